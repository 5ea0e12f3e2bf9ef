"""What kept a task from beginning is known by its id; critical tasks that never ran count as failures of their job."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column

from aaiclick.orchestration.store.definitions.column_types import Id
from aaiclick.orchestration.store.migrations.steps import must_be_repeatable

revision = "0010"
down_revision = "0009"

_DOOMED = "FROM tasks WHERE tasks.job_id = jobs.id AND tasks.critical AND tasks.status"


def upgrade() -> None:
    for table in ("tasks", "ripples"):
        op.add_column(table, Column("cause_id", Id), if_not_exists=must_be_repeatable())
    op.execute(  # counted anew rather than added: where each statement is a commit, this may be repeated
        f"UPDATE jobs SET failed_critical = (SELECT count(*) {_DOOMED} IN ('failed', 'upstream_failed'))"
        f" WHERE EXISTS (SELECT 1 {_DOOMED} = 'upstream_failed')"
    )
