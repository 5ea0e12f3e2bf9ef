"""What became of each reconciler, for everyone to see."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, String

from aaiclick.orchestration.store.definitions.column_types import UtcTime
from aaiclick.orchestration.store.migrations.steps import create_table

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    create_table(
        "reconcilers",
        Column("name", String(100), primary_key=True),
        Column("term", BigInteger, nullable=False),
        Column("runs", BigInteger, nullable=False),
        Column("done", BigInteger, nullable=False),
        Column("failures", BigInteger, nullable=False),
        Column("seconds", Double, nullable=False),
        Column("ran_at", UtcTime),
        Column("trouble", String(400)),
        Column("trouble_at", UtcTime),
    )
