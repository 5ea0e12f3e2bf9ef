"""The log of operations: which made which table from which, with its SQL. It outlives the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.tables import NewTable
from aaiclick.data.provenance.column_sources import UNKNOWN, Derived, derived
from aaiclick.data.query.relations import Relation, tables_of
from aaiclick.telemetry.masks import is_mentioned, mask_text

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "aai_oplog"
BATCH = 500
"""Rows that gather before they are written."""

BATCH_SIGNS = 20_000_000
"""Signs of their texts and names that gather."""

SQL_LENGTH_MAX = 20_000

COLUMNS = {
    "columns.column": "Array(LowCardinality(String))",
    "columns.table": "Array(LowCardinality(String))",
    "columns.source": "Array(LowCardinality(String))",
    "columns.how": "Array(LowCardinality(String))",
}
"""Which column comes from which: for each, one element of all four lists. Logs of older versions lack them."""

_COLUMNS = {
    "at": "DateTime64(6, 'UTC')",
    "operation": "LowCardinality(String)",
    "result": "String",
    "sources": "Array(String)",
    "query": "String",
    "job_id": "Nullable(Int64)",
    "task_id": "Nullable(Int64)",
    **COLUMNS,
}
_LISTED = ", ".join(f"`{name}` {kind}" for name, kind in _COLUMNS.items())
_NEW = NewTable(TABLE, "(result, at)", columns=_LISTED, names=tuple(_COLUMNS), tokens=True)


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
    columns: tuple[Derived, ...] = ()


class Oplog:
    """Notes operations, and writes them a batch at a time."""

    def __init__(self, client: DataClient, job_id: int | None = None, task_id: int | None = None) -> None:
        self._client = client
        self._job_id, self._task_id = job_id, task_id
        self._notes: list[Operation] = []
        self._is_made = False
        self._signs = 0

    async def note(
        self,
        operation: str,
        result: str,
        sources: Sequence[str] | Relation,
        query: str,
        columns: tuple[Derived, ...] | None = None,
    ) -> None:
        """An operation was done; a relation tells its sources, and which columns come from which."""
        query = mask_text(query)  # before it is cut: half of a secret is none that is known
        text = query if len(query) <= SQL_LENGTH_MAX else query[:SQL_LENGTH_MAX] + "…"
        if not isinstance(sources, Sequence):
            tables = tables_of(sources)
            columns, sources = derived(sources, tables), [table.name for table in tables]
        if columns is None:
            columns = UNKNOWN if sources else ()
        facts = (operation, result, tuple(sources), text, self._job_id, self._task_id, _masked(columns))
        self._notes.append(Operation(datetime.now(UTC), *facts))
        self._signs += len(text) + sum(map(len, sources)) + sum(len(name) for each in columns for name in each)
        if len(self._notes) >= BATCH or self._signs >= BATCH_SIGNS:
            await self.flush()

    async def flush(self) -> None:
        """Write what has gathered."""
        notes, self._notes, self._signs = self._notes, [], 0
        if not notes:
            return
        if not self._is_made:
            await self._make()
            self._is_made = True
        await self._client.insert(TABLE, _table(notes))

    async def _make(self) -> None:
        """Make the table; one of an older version gets the columns that it lacks."""
        tables = self._client.tables
        there = await tables.make_once(self._client, _NEW)
        if missing := COLUMNS.keys() - set(there.columns[0]):
            await tables.add_columns(self._client, TABLE, {name: COLUMNS[name] for name in sorted(missing)})


def _masked(columns: tuple[Derived, ...]) -> tuple[Derived, ...]:
    if not is_mentioned("\n".join(name for each in columns for name in each)):
        return columns
    return tuple(Derived(*map(mask_text, each)) for each in columns)


def read_columns(columns: Sequence[Sequence[str]]) -> tuple[Derived, ...]:
    """Which columns come from which, from the four lists of a row."""
    return _masked(tuple(map(Derived._make, zip(*columns, strict=True))))


def _table(notes: Sequence[Operation]) -> pa.Table:
    import pyarrow as pa  # here, to keep start-up light

    words = pa.list_(pa.string())
    return pa.table(
        {
            "at": pa.array([note.at for note in notes], pa.timestamp("us", "UTC")),
            "operation": pa.array([note.operation for note in notes], pa.string()),
            "result": pa.array([note.result for note in notes], pa.string()),
            "sources": pa.array([list(note.sources) for note in notes], words),
            "query": pa.array([note.query for note in notes], pa.string()),
            "job_id": pa.array([note.job_id for note in notes], pa.int64()),
            "task_id": pa.array([note.task_id for note in notes], pa.int64()),
            **{
                name: pa.array([[each[place] for each in note.columns] for note in notes], words)
                for place, name in enumerate(COLUMNS)
            },
        }
    )
