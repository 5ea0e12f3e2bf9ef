"""What a query costs: it is run, and its rows are thrown away."""

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
"""What is sorted is sorted, though nobody looks at the order."""


@dataclass(frozen=True)
class Stats:
    """What one run of a query has read, and how long it took, by ClickHouse's own account."""

    rows: int
    """The rows of the answer."""
    rows_read: int
    bytes_read: int
    seconds: float

    def __str__(self) -> str:
        read = f"{self.rows_read} rows and {self.bytes_read} bytes read"
        return f"{self.rows} rows; {read}; {self.seconds:.6f} s"


async def stats(client: DataClient, relation: Relation) -> Stats:
    """Run a query, with all of its columns, and give what ClickHouse tells of it."""
    query = f"SELECT count(), max(ignore(*)) FROM ({to_sql(relation)})"  # noqa: S608 (compiled)
    with tempfile.TemporaryDirectory(prefix="aaiclick-") as folder:
        file = Path(folder) / "answer.json"
        await client.save(query, "JSONCompact", str(file), _AS_WRITTEN)
        told = json.loads(await asyncio.to_thread(file.read_text))
    counts = told["statistics"]
    return Stats(int(told["data"][0][0]), int(counts["rows_read"]), int(counts["bytes_read"]), counts["elapsed"])
