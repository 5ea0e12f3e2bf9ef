"""The log of operations: which made which table from which, with its SQL. It outlives the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aaiclick.data.clients.contract import DataClient
from aaiclick.telemetry.masks import mask_text

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "aai_oplog"
BATCH = 500
"""Rows that gather before they are written."""

SQL_LENGTH_MAX = 20_000

_CREATE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    at DateTime64(6, 'UTC'), operation LowCardinality(String), result String, sources Array(String), query String,
    job_id Nullable(Int64), task_id Nullable(Int64)
) ENGINE = MergeTree ORDER BY (result, at) SETTINGS non_replicated_deduplication_window = 1000
"""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation that was done."""

    at: datetime
    operation: str
    result: str
    sources: tuple[str, ...]
    query: str
    job_id: int | None = None
    task_id: int | None = None


class Oplog:
    """Notes operations, and writes them a batch at a time."""

    def __init__(self, client: DataClient, job_id: int | None = None, task_id: int | None = None) -> None:
        self._client = client
        self._job_id, self._task_id = job_id, task_id
        self._notes: list[Operation] = []
        self._is_made = False

    async def note(self, operation: str, result: str, sources: Sequence[str], query: str) -> None:
        """An operation was done."""
        query = mask_text(query)  # before it is cut: half of a secret is none that is known
        text = query if len(query) <= SQL_LENGTH_MAX else query[:SQL_LENGTH_MAX] + "…"
        done = Operation(datetime.now(UTC), operation, result, tuple(sources), text, self._job_id, self._task_id)
        self._notes.append(done)
        if len(self._notes) >= BATCH:
            await self.flush()

    async def flush(self) -> None:
        """Write what has gathered."""
        notes, self._notes = self._notes, []
        if not notes:
            return
        if not self._is_made:
            await self._client.command(_CREATE)
            self._is_made = True
        await self._client.insert(TABLE, _table(notes))


def _table(notes: Sequence[Operation]) -> pa.Table:
    import pyarrow as pa  # here, to keep start-up light

    return pa.table(
        {
            "at": pa.array([note.at for note in notes], pa.timestamp("us", "UTC")),
            "operation": pa.array([note.operation for note in notes], pa.string()),
            "result": pa.array([note.result for note in notes], pa.string()),
            "sources": pa.array([list(note.sources) for note in notes], pa.list_(pa.string())),
            "query": pa.array([note.query for note in notes], pa.string()),
            "job_id": pa.array([note.job_id for note in notes], pa.int64()),
            "task_id": pa.array([note.task_id for note in notes], pa.int64()),
        }
    )
