"""A task's epoch can also be read as `run_epoch`; a backfill knows whether its arguments came from outside."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer

from aaiclick.orchestration.store.definitions.column_types import ReadAs
from aaiclick.orchestration.store.migrations.steps import flag, must_be_repeatable

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("tasks", Column("run_epoch", Integer, ReadAs("epoch")), if_not_exists=must_be_repeatable())
    op.add_column("backfills", flag("from_outside"), if_not_exists=must_be_repeatable())
