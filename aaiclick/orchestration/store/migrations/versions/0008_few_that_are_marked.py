"""Of references to tables, the few that are marked are found by an index of their own; the others cost nothing there.

MariaDB has no such indexes: there all stays as it was.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, UtcTime
from aaiclick.orchestration.store.migrations.steps import create_index, create_table, flag

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    database = op.get_context().dialect.name
    if database == "sqlite":
        rebuild_registry()
    if database in ("sqlite", "postgresql"):
        index_few("table_context_refs", "dropping", drop=database == "postgresql")
        index_few("table_run_refs", "freed")
        index_few("table_pin_refs", "freed")


def rebuild_registry() -> None:
    """The name is the key: without a number for each row it is stored once."""
    op.rename_table("table_context_refs", "table_context_refs_old")
    create_table(
        "table_context_refs",
        Column("table_name", String(100), primary_key=True),
        Column("context_id", Id, nullable=False),
        Column("job_id", Id, nullable=False),
        Column("epoch", Integer, nullable=False, server_default=text("0")),
        flag("preserved"),
        flag("dropping"),
        Column("created_at", UtcTime, nullable=False),
        with_rowid=False,
    )
    columns = "table_name, context_id, job_id, epoch, preserved, dropping, created_at"
    op.execute(f"INSERT INTO table_context_refs ({columns}) SELECT {columns} FROM table_context_refs_old")
    op.drop_table("table_context_refs_old")
    create_index("ix_table_context_refs_job", "table_context_refs", "job_id")


def index_few(table: str, marked: str, *, drop: bool = True) -> None:
    name = f"ix_{table}_{marked}"
    if drop:
        op.drop_index(name, table)
    op.create_index(name, table, [marked], postgresql_where=text(marked), sqlite_where=text(f"{marked} = 1"))
