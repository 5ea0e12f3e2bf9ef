"""The cost of a query, measured by running it and discarding its rows."""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.query.relations import Relation

_AS_WRITTEN = {"query_plan_remove_redundant_sorting": 0}
"""Keeps ClickHouse from dropping a sort whose order nothing uses: the measured query must do all its work."""


@dataclass(frozen=True)
class Stats:
    """What one run of a query read, and how long it took in seconds, as ClickHouse reports it."""

    rows: int
    """The number of rows in the answer."""
    rows_read: int
    bytes_read: int
    seconds: float

    def __str__(self) -> str:
        read = f"{self.rows_read} rows and {self.bytes_read} bytes read"
        return f"{self.rows} rows; {read}; {self.seconds:.6f} s"


async def stats(client: DataClient, relation: Relation) -> Stats:
    """Run a query, computing all its columns, and return the cost that ClickHouse reports."""
    query = f"SELECT count(), max(ignore(*)) FROM ({to_sql(relation)})"  # noqa: S608 (compiled)
    with tempfile.TemporaryDirectory(prefix="aaiclick-") as folder:
        file = Path(folder) / "answer.json"
        await client.save(query, "JSONCompact", str(file), _AS_WRITTEN)
        told = json.loads(await asyncio.to_thread(file.read_text))
    counts = told["statistics"]
    return Stats(int(told["data"][0][0]), int(counts["rows_read"]), int(counts["bytes_read"]), counts["elapsed"])
