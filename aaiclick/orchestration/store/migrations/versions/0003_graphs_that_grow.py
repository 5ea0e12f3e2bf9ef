"""References to object tables, what this installation is called, results that a job keeps, outputs of groups."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, Integer, String, text
from sqlalchemy.schema import SchemaItem

from aaiclick.orchestration.store.columns import Id, UtcTime

revision = "0003"
down_revision = "0002"

BUSY = {
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
}
HOT = {"fillfactor": 50, **BUSY}


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


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean(create_constraint=False), nullable=False, server_default=text("false"))


def create_table(
    name: str, *columns: SchemaItem, postgres: dict[str, float] | None = None, with_rowid: bool = True
) -> None:
    op.create_table(
        name,
        *columns,
        if_not_exists=must_be_repeatable(),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_nopad_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_nopad_bin",
        postgresql_with=postgres or {},
        sqlite_with_rowid=with_rowid,
    )


def create_index(name: str, table: str, *columns: str) -> None:
    op.create_index(name, table, list(columns), if_not_exists=must_be_repeatable())


def must_be_repeatable() -> bool:
    """MariaDB commits at each statement; the others undo a step that was cut off."""
    return op.get_context().dialect.name in ("mysql", "mariadb")
