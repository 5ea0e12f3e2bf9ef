"""The tasks of a job in the order of their ids, from any place on, without reading those of others."""

from __future__ import annotations

from alembic import op

from aaiclick.orchestration.store.migrations.steps import create_index, must_be_repeatable

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    create_index("ix_tasks_page", "tasks", "job_id", "id")
    op.drop_index("ix_tasks_job", "tasks", if_exists=must_be_repeatable())
