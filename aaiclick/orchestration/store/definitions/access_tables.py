"""The tables of access from outside: tokens, and the audit of changes."""

from __future__ import annotations

from sqlalchemy import Column, Index, String

from aaiclick.orchestration.store.definitions.column_types import Id, LongText, UtcTime
from aaiclick.orchestration.store.definitions.common_columns import key, table

tokens = table(
    "tokens",
    key("id"),
    Column("name", String(200), nullable=False),
    Column("role", String(20), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Column("revoked_at", UtcTime),
    Column("last_used_at", UtcTime),
)
"""`digest`: the SHA-256 of the secret, which is not stored. It has 256 random bits, so it cannot be guessed."""

audit = table(
    "audit",
    key("id"),
    Column("at", UtcTime, nullable=False),
    Column("actor_id", Id),
    Column("actor", String(200), nullable=False),
    Column("verb", String(50), nullable=False),
    Column("target", String(250), nullable=False),
    Column("outcome", LongText),
    Index("ix_audit_target", "target", "id"),
)
"""Written before a change is made, and updated with its outcome: no change goes unrecorded."""
