"""Tokens of those who come in from outside, and what they changed."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, String

from aaiclick.orchestration.store.definitions.column_types import Id, LongText, UtcTime
from aaiclick.orchestration.store.migrations.steps import create_table, must_be_repeatable

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    create_table(
        "tokens",
        Column("id", Id, primary_key=True, autoincrement=False),
        Column("name", String(200), nullable=False),
        Column("role", String(20), nullable=False),
        Column("digest", String(64), nullable=False),
        Column("created_at", UtcTime, nullable=False),
        Column("expires_at", UtcTime),
        Column("revoked_at", UtcTime),
        Column("last_used_at", UtcTime),
    )
    create_table(
        "audit",
        Column("id", Id, primary_key=True, autoincrement=False),
        Column("at", UtcTime, nullable=False),
        Column("actor_id", Id),
        Column("actor", String(200), nullable=False),
        Column("verb", String(50), nullable=False),
        Column("target", String(250), nullable=False),
        Column("outcome", LongText),
    )
    op.create_index("ix_audit_target", "audit", ["target", "id"], if_not_exists=must_be_repeatable())
