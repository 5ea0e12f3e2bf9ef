"""The tables of nodes and lanes: which worker may run which task."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, String

from aaiclick.orchestration.store.definitions.column_types import JsonText, LongText, UtcTime
from aaiclick.orchestration.store.definitions.common_columns import key, table

lanes = table(
    "lanes",
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("digest", String(64), nullable=False),
    Column("needs", LongText, nullable=False),
    Index("ix_lanes_digest", "digest", unique=True),
)
"""One row for each set of needs that tasks have of workers; it never changes. Lane 0, for no needs, has no row."""

nodes = table(
    "nodes",
    key("id"),
    Column("name", String(200), nullable=False),
    Column("pool", String(200)),
    Column("state", String(20), nullable=False),
    Column("capabilities", JsonText, nullable=False),
    Column("executor_types", JsonText, nullable=False),
    Column("registered_at", UtcTime, nullable=False),
    Column("described_at", UtcTime, nullable=False),
    Index("ix_nodes_name", "name", unique=True),
)
"""One row for each machine that workers have named; `described_at`: when one of them last said what it has.

Whoever changes the state of a node, or counts what runs on it before adding to it, locks its row first. `workers`
repeats the state as `cordoned`, so that a claim reads no other row than its worker's.
"""
