"""The machines that run tasks, and what jobs and groups say of where their tasks may run."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, UtcTime
from aaiclick.orchestration.store.migrations.steps import create_index, create_table, flag, must_be_repeatable

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    create_table(
        "nodes",
        Column("id", Id, primary_key=True, autoincrement=False),
        Column("name", String(200), nullable=False),
        Column("pool", String(200)),
        Column("state", String(20), nullable=False),
        Column("capabilities", JsonText, nullable=False),
        Column("executor_types", JsonText, nullable=False),
        Column("registered_at", UtcTime, nullable=False),
        Column("described_at", UtcTime, nullable=False),
    )
    create_index("ix_nodes_name", "nodes", "name", unique=True)
    again = must_be_repeatable()
    op.add_column("workers", Column("node_id", Id), if_not_exists=again)
    op.add_column("workers", flag("cordoned"), if_not_exists=again)
    create_index("ix_workers_node", "workers", "node_id")
    for table in ("jobs", "groups"):
        lane = Column("lane", Integer, nullable=False, server_default=text("0"))
        op.add_column(table, lane, if_not_exists=again)
    op.add_column("registered_jobs", Column("placement", JsonText), if_not_exists=again)
