"""The tables of who may run what."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, String

from aaiclick.orchestration.store.definitions.column_types import LongText
from aaiclick.orchestration.store.definitions.common_columns import table

lanes = table(
    "lanes",
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("digest", String(64), nullable=False),
    Column("needs", LongText, nullable=False),
    Index("ix_lanes_digest", "digest", unique=True),
)
"""What tasks need of whoever runs them: a row for each set of needs, which never changes. Lane 0 has none."""
