"""Jobs know their time, backfill and arguments, and are listed by creation; backfills count and have ends."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import Column, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, UtcTime
from aaiclick.orchestration.store.migrations.steps import create_index, create_table, flag, must_be_repeatable

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    columns: list[Column[object]] = [
        Column("scheduled_at", UtcTime),
        Column("backfill_id", Id),
        Column("arguments", JsonText),
    ]
    for column in columns:
        op.add_column("jobs", column, if_not_exists=must_be_repeatable())
    fill_in()
    create_index("ix_jobs_created", "jobs", "created_at", "id")
    create_index("ix_jobs_status_created", "jobs", "status", "created_at", "id")
    op.drop_index("ix_jobs_status", "jobs", if_exists=must_be_repeatable())
    index_known("ix_jobs_backfill", "jobs", "backfill_id", "status")
    if op.get_context().dialect.name == "sqlite":
        rebuild_backfills()
        return
    op.alter_column("backfills", "status", type_=String(30), existing_type=String(20), existing_nullable=False)
    for added in new_columns():
        op.add_column("backfills", added, if_not_exists=must_be_repeatable())


def fill_in() -> None:
    """What was known of the runs of times until now."""
    of_this = "FROM fires WHERE fires.job_id = jobs.id"
    op.execute(
        f"UPDATE jobs SET scheduled_at = (SELECT fire_at {of_this}), backfill_id = (SELECT backfill_id {of_this})"
        " WHERE id IN (SELECT job_id FROM fires WHERE job_id IS NOT NULL)"
    )


def index_known(name: str, table: str, column: str, *more: str) -> None:
    where = text(f"{column} IS NOT NULL")
    op.create_index(
        name,
        table,
        [column, *more],
        if_not_exists=must_be_repeatable(),
        postgresql_where=where,
        sqlite_where=where,
    )


def new_columns() -> list[Column[Any]]:
    return [
        flag("force"),
        flag("failed_only"),
        Column("total", Integer, nullable=False, server_default=text("0")),
        Column("left_alone", Integer, nullable=False, server_default=text("0")),
    ]


def rebuild_backfills() -> None:
    """SQLite changes no column's type."""
    for index in ("ix_backfills_status", "ix_backfills_registered"):
        op.drop_index(index, "backfills")
    op.rename_table("backfills", "backfills_old")
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
        Column("status", String(30), nullable=False),
        Column("created_at", UtcTime, nullable=False),
        Column("completed_at", UtcTime),
        *new_columns(),
    )
    columns = (
        "id, registered_job_id, schedule, timezone, kwargs, start_at, end_at, next_at, parallel_max, status,"
        " created_at, completed_at"
    )
    op.execute(f"INSERT INTO backfills ({columns}) SELECT {columns} FROM backfills_old")
    op.drop_table("backfills_old")
    create_index("ix_backfills_status", "backfills", "status", "id")
    create_index("ix_backfills_registered", "backfills", "registered_job_id", "id")
