"""Resources: what nodes and the whole installation have, and what runs hold of it."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText
from aaiclick.orchestration.store.migrations.steps import BUSY, create_index, create_table, must_be_repeatable

revision = "0028"
down_revision = "0025"


def upgrade() -> None:
    for table in ("nodes", "registered_jobs"):
        op.add_column(table, Column("resources", JsonText), if_not_exists=must_be_repeatable())
    create_table(
        "resource_units",
        *_unit(),
        Column("size", BigInteger, nullable=False),
        Column("device", String(200)),
        Column("memory_mb", BigInteger),
        with_rowid=False,
    )
    create_table(
        "resource_grants",
        Column("task_id", Id, primary_key=True, autoincrement=False),
        Column("epoch", Integer, primary_key=True, autoincrement=False),
        *_unit(),
        Column("amount", BigInteger, nullable=False),
        Column("device", String(200)),
        Column("memory_mb", BigInteger),
        Column("worker_id", Id, nullable=False),
        Column("claim_call", Integer, nullable=False, server_default=text("0")),
        postgres=BUSY,
        with_rowid=False,
    )
    create_index("ix_resource_grants_unit", "resource_grants", "scope", "name", "slot")
    create_index("ix_resource_grants_worker", "resource_grants", "worker_id")


def _unit() -> tuple[Column[int], Column[str], Column[int]]:
    """Return the columns that say which unit."""
    return (
        Column("scope", Id, primary_key=True, autoincrement=False),
        Column("name", String(200), primary_key=True),
        Column("slot", Integer, primary_key=True, autoincrement=False),
    )
