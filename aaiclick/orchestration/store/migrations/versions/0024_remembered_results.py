"""Results are remembered across jobs; each execution has an idempotency key."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, UtcTime
from aaiclick.orchestration.store.migrations.steps import create_index, create_table, must_be_repeatable

revision = "0024"
down_revision = "0023"

_RECORDS = """execution_idempotency AS
SELECT t.id AS task_id, r.epoch AS attempt_id, coalesce(t.idempotency_key, {ended}) AS idempotency_key,
    CASE WHEN r.outcome = 'completed' AND r.epoch = t.epoch THEN t.result END AS result,
    CASE WHEN r.outcome = 'completed' THEN 'completed' ELSE 'failed' END AS status,
    r.claimed_at AS created_at
FROM runs r JOIN tasks t ON t.id = r.task_id
UNION ALL SELECT t.id, t.epoch, coalesce(t.idempotency_key, {live}), NULL, 'pending', t.claimed_at
FROM tasks t WHERE t.status IN ('claimed', 'running')"""


def upgrade() -> None:
    create_entries()
    repeatable = must_be_repeatable()
    zero: Column[int] = Column("generation", Integer, nullable=False, server_default=text("0"))
    mode: Column[str] = Column("cache_mode", String(10), nullable=False, server_default=text("'use'"))
    op.add_column("jobs", mode, if_not_exists=repeatable)
    op.add_column("runs", zero, if_not_exists=repeatable)
    for column in (
        Column("cache_policy", String(2000)),
        Column("idempotency_key", String(200)),
        Column("cache_outcome", String(10)),
        Column("cached_from_id", Id),
    ):
        op.add_column("tasks", column, if_not_exists=repeatable)
    key = "CONCAT(t.id, '-', {of}.generation)"
    if not repeatable:
        key = "CAST(t.id AS varchar(20)) || '-' || CAST({of}.generation AS varchar(11))"
    create = "CREATE OR REPLACE SQL SECURITY INVOKER VIEW" if repeatable else "CREATE VIEW"
    op.execute(f"{create} {_RECORDS.format(ended=key.format(of='r'), live=key.format(of='t'))}")


def create_entries() -> None:
    create_table(
        "cache_entries",
        Column("digest", String(64), primary_key=True),
        Column("id", Id, nullable=False),
        Column("kind", String(10), nullable=False),
        Column("entrypoint", String(500), nullable=False),
        Column("label", String(200)),
        Column("inputs", String(64), nullable=False),
        Column("result", JsonText, nullable=False),
        Column("tables", Integer, nullable=False, server_default=text("0")),
        Column("job_id", Id, nullable=False),
        Column("task_id", Id, nullable=False),
        Column("epoch", Integer, nullable=False),
        Column("created_at", UtcTime, nullable=False),
        Column("expires_at", UtcTime),
    )
    create_index("ix_cache_entries_id", "cache_entries", "id", unique=True)
    create_index("ix_cache_entries_job", "cache_entries", "job_id")
    have = text("expires_at IS NOT NULL")
    op.create_index(
        "ix_cache_entries_expires",
        "cache_entries",
        ["expires_at"],
        if_not_exists=must_be_repeatable(),
        postgresql_where=have,
        sqlite_where=have,
    )
