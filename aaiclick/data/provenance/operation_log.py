"""The log of operations, a table in ClickHouse: which operation made which table from which, with its SQL.

Its rows outlive the tables that they name.
"""

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
"""How many operations are gathered before they are written."""

BATCH_SIGNS = 20_000_000
"""How many characters of their texts and names are gathered before they are written."""

SQL_LENGTH_MAX = 20_000

COLUMNS = {
    "columns.column": "Array(LowCardinality(String))",
    "columns.table": "Array(LowCardinality(String))",
    "columns.source": "Array(LowCardinality(String))",
    "columns.how": "Array(LowCardinality(String))",
}
"""Which column comes from which, as four lists of equal length. The log of an older version lacks them."""

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
    """One logged operation: the table it made or changed, from which others, and when."""

    at: datetime
    operation: str
    result: str
    sources: tuple[str, ...]
    query: str
    job_id: int | None = None
    task_id: int | None = None
    columns: tuple[Derived, ...] = ()


class Oplog:
    """Gathers operations, and writes them to the log in batches."""

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
        """Add an operation; a relation as `sources` gives its tables, and which columns come from which."""
        query = mask_text(query)  # before it is cut: half of a secret would not be recognized
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
        """Write the gathered operations."""
        notes, self._notes, self._signs = self._notes, [], 0
        if not notes:
            return
        if not self._is_made:
            await self._make()
            self._is_made = True
        await self._client.insert(TABLE, _table(notes))

    async def _make(self) -> None:
        """Create the table; add the columns that a table of an older version lacks."""
        tables = self._client.tables
        there = await tables.make_once(self._client, _NEW)
        if missing := COLUMNS.keys() - set(there.columns[0]):
            await tables.add_columns(self._client, TABLE, {name: COLUMNS[name] for name in sorted(missing)})


def _masked(columns: tuple[Derived, ...]) -> tuple[Derived, ...]:
    if not is_mentioned("\n".join(name for each in columns for name in each)):
        return columns
    return tuple(Derived(*map(mask_text, each)) for each in columns)


def read_columns(columns: Sequence[Sequence[str]]) -> tuple[Derived, ...]:
    """Return which columns come from which, from the four lists of a row, with secrets masked."""
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
