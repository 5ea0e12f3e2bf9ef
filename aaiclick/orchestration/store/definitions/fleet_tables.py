"""The table of lanes: which worker may run which task."""

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
"""One row for each set of needs that tasks have of workers; it never changes. Lane 0, for no needs, has no row."""
