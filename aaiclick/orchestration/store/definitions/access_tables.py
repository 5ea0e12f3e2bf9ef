"""The tables of access from outside: tokens, the audit of changes, and callbacks that tasks wait for."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, String

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
    Column("node_id", Id),
    Column("pool", String(200)),
    Column("uses_left", Integer),
    Column("joined_with", Id),
)
"""`digest`: the SHA-256 of the secret, which is not stored. It has 256 random bits, so it cannot be guessed.

A worker's token is bound to the node `node_id`; `joined_with` is the token that it was exchanged for. Such a token may
be exchanged `uses_left` times more, by nodes of its `pool`.
"""

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

callbacks = table(
    "callbacks",
    Column("digest", String(64), primary_key=True),
    Column("task_id", Id, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("received_at", UtcTime),
    Column("body", LongText),
    Index("ix_callbacks_task", "task_id"),
)
"""Callbacks that tasks wait for. `digest`: the SHA-256 of the token. `generation`: how often the task was cleared."""
