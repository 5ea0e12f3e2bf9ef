"""What a task needs of whoever runs it is its lane; `placement` is named for what it says: for whom it is reserved."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, LongText
from aaiclick.orchestration.store.migrations.steps import BUSY, create_index, create_table, must_be_repeatable

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    create_lanes()
    for table in ("jobs", "tasks"):
        rename_placement(table)
    lane = Column("lane", Integer, nullable=False, server_default=text("0"))
    op.add_column("tasks", lane, if_not_exists=must_be_repeatable())
    if must_be_repeatable():
        change_ready()
    else:
        copy_ready()


def create_lanes() -> None:
    create_table(
        "lanes",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("digest", String(64), nullable=False),
        Column("needs", LongText, nullable=False),
    )
    create_index("ix_lanes_digest", "lanes", "digest", unique=True)


def rename_placement(table: str) -> None:
    if must_be_repeatable():
        op.execute(f"ALTER TABLE {table} CHANGE COLUMN IF EXISTS placement reserved_for BIGINT NOT NULL DEFAULT 0")
    else:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN placement TO reserved_for")


def change_ready() -> None:
    """One statement, which happens as a whole."""
    op.execute(
        "ALTER TABLE ready CHANGE COLUMN IF EXISTS placement reserved_for BIGINT NOT NULL,"
        " ADD COLUMN IF NOT EXISTS lane INTEGER NOT NULL AFTER reserved_for,"  # 0 in the rows that are there
        " DROP PRIMARY KEY, ADD PRIMARY KEY (reserved_for, lane, `rank`, job_id, task_id)"
    )


def copy_ready() -> None:
    """Into a new table: SQLite changes no primary key, and in PostgreSQL the lane then takes no room.

    It lies beside the rank, where four bytes were left free so that what follows begins at a multiple of eight.
    """
    op.rename_table("ready", "ready_before")
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER INDEX ready_pkey RENAME TO ready_before_pkey")
    create_table(
        "ready",
        Column("reserved_for", BigInteger, primary_key=True, autoincrement=False),
        Column("lane", Integer, primary_key=True, autoincrement=False),
        Column("rank", Integer, primary_key=True, autoincrement=False),
        Column("job_id", Id, primary_key=True, autoincrement=False),
        Column("task_id", Id, primary_key=True, autoincrement=False),
        postgres=BUSY,
        with_rowid=False,
    )
    op.execute(
        "INSERT INTO ready (reserved_for, lane, rank, job_id, task_id)"
        " SELECT placement, 0, rank, job_id, task_id FROM ready_before"
    )
    op.drop_table("ready_before")
