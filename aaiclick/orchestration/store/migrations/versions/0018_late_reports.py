"""Runs that reported too late, and reports that could not be stored, are known; events of tasks under other names."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, String

from aaiclick.orchestration.store.migrations.steps import flag, must_be_repeatable

revision = "0018"
down_revision = "0017"

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
    repeatable = must_be_repeatable()
    op.add_column("runs", flag("late"), if_not_exists=repeatable)
    op.add_column("runs", Column("report_digest", String(64)), if_not_exists=repeatable)
    create = "CREATE OR REPLACE SQL SECURITY INVOKER VIEW" if repeatable else "CREATE VIEW"
    op.execute(f"{create} {_TASK_EVENTS}")
