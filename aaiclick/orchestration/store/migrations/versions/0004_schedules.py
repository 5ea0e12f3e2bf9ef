"""Schedules: their zones and policies, the times at which they fired, and backfills."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, Double, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, UtcTime
from aaiclick.orchestration.store.migrations.steps import create_index, create_table, must_be_repeatable

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    plain = Boolean(create_constraint=False)
    columns: list[Column[object]] = [
        Column("timezone", String(100), nullable=False, server_default=text("'UTC'")),
        Column("missed_runs", String(10), nullable=False, server_default=text("'latest'")),
        Column("missed_max", Integer, nullable=False, server_default=text("10")),
        Column("overlap", String(10), nullable=False, server_default=text("'allow'")),
        Column("time_kwarg", String(200)),
        Column("priority", Integer, nullable=False, server_default=text("0")),
        Column("timeout_s", Double),
        Column("fail_fast", plain, nullable=False, server_default=text("false")),
    ]
    for column in columns:
        op.add_column("registered_jobs", column, if_not_exists=must_be_repeatable())
    create_index("ix_jobs_registered", "jobs", "registered_job_id", "status")
    create_table(
        "fires",
        Column("registered_job_id", Id, primary_key=True, autoincrement=False),
        Column("fire_at", UtcTime, primary_key=True),
        Column("outcome", String(10), nullable=False),
        Column("job_id", Id),
        Column("backfill_id", Id),
        Column("created_at", UtcTime, nullable=False),
        with_rowid=False,
    )
    create_index("ix_fires_outcome", "fires", "outcome", "registered_job_id", "fire_at")
    create_index("ix_fires_job", "fires", "job_id")
    create_table(
        "backfills",
        Column("id", Id, primary_key=True, autoincrement=False),
        Column("registered_job_id", Id, nullable=False),
        Column("schedule", String(200), nullable=False),
        Column("timezone", String(100), nullable=False),
        Column("kwargs", JsonText, nullable=False),
        Column("start_at", UtcTime, nullable=False),
        Column("end_at", UtcTime, nullable=False),
        Column("next_at", UtcTime, nullable=False),
        Column("parallel_max", Integer, nullable=False),
        Column("status", String(20), nullable=False),
        Column("created_at", UtcTime, nullable=False),
        Column("completed_at", UtcTime),
    )
    create_index("ix_backfills_status", "backfills", "status", "id")
    create_index("ix_backfills_registered", "backfills", "registered_job_id", "id")
