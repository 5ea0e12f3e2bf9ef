"""The table of remembered results."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, String

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, UtcTime
from aaiclick.orchestration.store.definitions.common_columns import count, known, table

cache_entries = table(
    "cache_entries",
    Column("digest", String(64), primary_key=True),
    Column("id", Id, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("entrypoint", String(500), nullable=False),
    Column("label", String(200)),
    Column("inputs", String(64), nullable=False),
    Column("result", JsonText, nullable=False),
    count("tables"),
    Column("job_id", Id, nullable=False),
    Column("task_id", Id, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Index("ix_cache_entries_id", "id", unique=True),
    known("ix_cache_entries_expires", "expires_at"),
    Index("ix_cache_entries_job", "job_id"),
)
"""Remembered results, by the digest of their key. Tables that a result names are pinned under the entry's own id."""
