"""Jobs that are kept long enough go, with the rest of them in steps; an entry says how many of its runs it keeps."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer

from aaiclick.orchestration.store.definitions.column_types import Id
from aaiclick.orchestration.store.migrations.steps import create_table, must_be_repeatable

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    create_table("gone_jobs", Column("job_id", Id, primary_key=True, autoincrement=False))
    op.add_column("registered_jobs", Column("keep_last", Integer), if_not_exists=must_be_repeatable())
