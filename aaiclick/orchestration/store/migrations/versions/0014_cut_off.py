"""Whether the body of a task ends in time when its worker is cut off."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, text

from aaiclick.orchestration.store.migrations.steps import must_be_repeatable

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    truth = Boolean(create_constraint=False)
    stop: Column[bool] = Column("stop_when_cut_off", truth, nullable=False, server_default=text("true"))
    op.add_column("tasks", stop, if_not_exists=must_be_repeatable())
