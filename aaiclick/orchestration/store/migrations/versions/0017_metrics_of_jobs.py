"""Counters and histograms of jobs, by their names."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, String

from aaiclick.orchestration.store.migrations.steps import create_table

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    create_table(
        "job_metrics",
        Column("job", String(200), primary_key=True),
        Column("name", String(100), primary_key=True),
        Column("bucket", String(20), primary_key=True),
        Column("number", BigInteger, nullable=False),
        Column("seconds", Double, nullable=False),
    )
