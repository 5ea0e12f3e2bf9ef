"""References to object tables, what this installation is called, results that a job keeps, outputs of groups."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, UtcTime
from aaiclick.orchestration.store.migrations.steps import HOT, create_index, create_table, flag, must_be_repeatable

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("groups", Column("output_task_id", Id), if_not_exists=must_be_repeatable())
    op.add_column("groups", Column("parent_task_id", Id), if_not_exists=must_be_repeatable())
    op.add_column("tasks", flag("kept"), if_not_exists=must_be_repeatable())
    create_registry()
    create_run_refs()
    create_pins()
    create_table(
        "installation",
        Column("slot", Integer, primary_key=True, autoincrement=False),
        Column("id", String(32), nullable=False),
    )


def create_registry() -> None:
    create_table(
        "table_context_refs",
        Column("table_name", String(100), primary_key=True),
        Column("context_id", Id, nullable=False),
        Column("job_id", Id, nullable=False),
        Column("epoch", Integer, nullable=False, server_default=text("0")),
        flag("preserved"),
        flag("dropping"),
        Column("created_at", UtcTime, nullable=False),
        postgres=HOT,
    )
    create_index("ix_table_context_refs_job", "table_context_refs", "job_id")
    create_index("ix_table_context_refs_dropping", "table_context_refs", "dropping")


def create_run_refs() -> None:
    create_table(
        "table_run_refs",
        Column("task_id", Id, primary_key=True, autoincrement=False),
        Column("epoch", Integer, primary_key=True, autoincrement=False),
        Column("table_name", String(100), primary_key=True),
        Column("worker_id", Id, nullable=False),
        flag("freed"),
        postgres=HOT,
        with_rowid=False,
    )
    create_index("ix_table_run_refs_table", "table_run_refs", "table_name")
    create_index("ix_table_run_refs_freed", "table_run_refs", "freed")


def create_pins() -> None:
    create_table(
        "table_pin_refs",
        Column("task_id", Id, primary_key=True, autoincrement=False),
        Column("table_name", String(100), primary_key=True),
        flag("freed"),
        postgres=HOT,
        with_rowid=False,
    )
    create_index("ix_table_pin_refs_table", "table_pin_refs", "table_name")
    create_index("ix_table_pin_refs_freed", "table_pin_refs", "freed")
