"""What is held together with a claim carries the number of the worker's call that claimed it."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, text

from aaiclick.orchestration.store.migrations.steps import must_be_repeatable

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    call = Column("claim_call", Integer, nullable=False, server_default=text("0"))
    op.add_column("table_run_refs", call, if_not_exists=must_be_repeatable())
