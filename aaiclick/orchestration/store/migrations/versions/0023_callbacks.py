"""Callbacks that tasks wait for; the events of bodies that say there is nothing to do."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, String

from aaiclick.orchestration.store.definitions.column_types import Id, LongText, UtcTime
from aaiclick.orchestration.store.migrations.steps import create_table, must_be_repeatable

revision = "0023"
down_revision = "0022"

_TASK_EVENTS = """task_events AS
SELECT e.id AS event_id, e.job_id AS job_id, e.task_id AS task_id, e.epoch AS epoch,
    CASE WHEN lost.task_id IS NOT NULL THEN 'reassigned'
        WHEN e.move = 'claim' THEN 'assigned'
        WHEN e.move = 'release' THEN 'pending'
        WHEN e.move = 'start' THEN 'started'
        WHEN e.move = 'complete' THEN 'completed'
        WHEN e.move = 'fail' THEN 'failed'
        WHEN e.move = 'recover' THEN 'lease_expired'
        WHEN e.move = 'retry' THEN 'pending'
        WHEN e.move = 'give_up' THEN 'failed'
        WHEN e.move = 'doom' THEN 'upstream_failed'
        WHEN e.move = 'skip' THEN 'skipped'
        WHEN e.move = 'leave_out' THEN 'skipped'
        WHEN e.move = 'cancel' THEN 'cancelled'
        WHEN e.move = 'clear' THEN 'pending'
        WHEN e.move = 'remove' THEN 'removed'
        WHEN e.move = 'late_report' THEN 'late_report'
        ELSE e.move END AS event_type,
    e.worker_id AS node_id, e.at AS timestamp, e.detail AS details, e.move AS move, e.status AS status
FROM events e LEFT JOIN runs lost ON e.move = 'claim' AND lost.task_id = e.task_id
    AND lost.epoch = e.epoch - 2 AND lost.outcome = 'lost'
WHERE e.task_id IS NOT NULL"""


def upgrade() -> None:
    create_table(
        "callbacks",
        Column("digest", String(64), primary_key=True),
        Column("task_id", Id, nullable=False),
        Column("generation", Integer, nullable=False),
        Column("created_at", UtcTime, nullable=False),
        Column("received_at", UtcTime),
        Column("body", LongText),
    )
    op.create_index("ix_callbacks_task", "callbacks", ["task_id"], if_not_exists=must_be_repeatable())
    if must_be_repeatable():
        op.execute(f"CREATE OR REPLACE SQL SECURITY INVOKER VIEW {_TASK_EVENTS}")
    else:
        op.execute("DROP VIEW task_events")
        op.execute(f"CREATE VIEW {_TASK_EVENTS}")
