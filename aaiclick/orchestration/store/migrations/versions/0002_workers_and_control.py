"""Numbered claim calls, clear generations, jobs that stop at the first failure, and the leader's term."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, UtcTime

revision = "0002"
down_revision = "0001"

HOT = {
    "fillfactor": 50,
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
}


def upgrade() -> None:
    repeatable = op.get_context().dialect.name in ("mysql", "mariadb")  # the others undo a step that was cut off
    plain = Boolean(create_constraint=False)
    flag: Column[bool] = Column("fail_fast", plain, nullable=False, server_default=text("false"))
    op.add_column("jobs", flag, if_not_exists=repeatable)
    for table, name in (("tasks", "generation"), ("claims", "claim_call"), ("workers", "concurrency")):
        count = Column(name, Integer, nullable=False, server_default=text("0"))
        op.add_column(table, count, if_not_exists=repeatable)
    op.create_table(
        "terms",
        Column("role", String(50), primary_key=True),
        Column("holder", Id, nullable=False),
        Column("term", BigInteger, nullable=False),
        Column("expires_at", UtcTime, nullable=False),
        if_not_exists=repeatable,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_nopad_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_nopad_bin",
        postgresql_with=HOT,
    )
