"""A worker's row says for how long it has not been able to report."""

from __future__ import annotations

from alembic import op

from aaiclick.orchestration.store.definitions.common_columns import count
from aaiclick.orchestration.store.migrations.steps import must_be_repeatable

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("workers", count("unreported_s"), if_not_exists=must_be_repeatable())
