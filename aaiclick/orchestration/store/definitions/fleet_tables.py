"""The tables of nodes, lanes and resources: which worker may run which task, and when."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, String

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, LongText, UtcTime
from aaiclick.orchestration.store.definitions.common_columns import BUSY, count, key, table

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
    Column("resources", JsonText),
    Index("ix_nodes_name", "name", unique=True),
)
"""One row for each machine that workers have named; `described_at`: when one of them last said what it has.

Whoever changes the state of a node, or counts what runs on it before adding to it, locks its row first. `workers`
repeats the state as `cordoned`, so that a claim reads no other row than its worker's.
"""

resource_units = table(
    "resource_units",
    key("scope"),
    Column("name", String(200), primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("size", BigInteger, nullable=False),
    Column("device", String(200)),
    Column("memory_mb", BigInteger),
    with_rowid=False,
)
"""Capacities: one row for each GPU of a node, and for all that there is of anything else. `scope`: the node's id, or 0
for the whole installation. `size`: in thousandths; of a GPU, in thousandths of a megabyte.

No row says what is free: that is the size without the grants. Whoever grants locks the node's row, and then the rows of
scope 0 in the order of their names; then it adds up the grants.
"""

resource_grants = table(
    "resource_grants",
    key("task_id"),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    key("scope"),
    Column("name", String(200), primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("amount", BigInteger, nullable=False),
    Column("device", String(200)),
    Column("memory_mb", BigInteger),
    Column("worker_id", Id, nullable=False),
    count("claim_call"),
    Index("ix_resource_grants_unit", "scope", "name", "slot"),
    Index("ix_resource_grants_worker", "worker_id"),
    postgres=BUSY,
    with_rowid=False,
)
"""What runs hold of these units, from their claim until their worker says that the body is dead, or its session ends.

`claim_call`: the number of the call that claimed the task; see `claims`.
"""
