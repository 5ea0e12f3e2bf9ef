"""Tokens of nodes, and tokens that are exchanged for them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, String

from aaiclick.orchestration.store.definitions.column_types import Id
from aaiclick.orchestration.store.migrations.steps import must_be_repeatable

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    again = must_be_repeatable()
    op.add_column("tokens", Column("node_id", Id), if_not_exists=again)
    op.add_column("tokens", Column("pool", String(200)), if_not_exists=again)
    op.add_column("tokens", Column("uses_left", Integer), if_not_exists=again)
    op.add_column("tokens", Column("joined_with", Id), if_not_exists=again)
