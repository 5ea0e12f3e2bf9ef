"""The contract of ClickHouse clients, whether the engine is embedded or on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from aaiclick.data.clients.tables import Tables

Settings = Mapping[str, Any]


class Rows(NamedTuple):
    """A whole answer as Python values, column by column."""

    names: Sequence[str]
    types: Sequence[str]
    columns: Sequence[Sequence[Any]]


class DataClient(Protocol):
    """Runs statements, several at once. Its coroutines do not block the event loop."""

    tables: Tables
    """How tables are made in the engine or cluster of this client."""

    async def command(self, sql: str, settings: Settings | None = None) -> None:
        """Run a statement that returns no rows."""

    async def rows(self, sql: str, settings: Settings | None = None) -> Rows:
        """Return the whole answer as Python values, column by column."""

    async def make(self, sql: str, look: str, settings: Settings | None = None) -> Rows:
        """Run a statement that returns no rows, and directly after it the query `look`; return the rows of that."""

    def rows_now(self, sql: str, settings: Settings | None = None) -> Rows:
        """Like `rows`, for callers that cannot await: it blocks."""

    async def arrow(self, sql: str, settings: Settings | None = None) -> pa.Table:
        """Return the whole answer as an Arrow table."""

    def batches(self, sql: str, settings: Settings | None = None) -> AsyncIterator[pa.RecordBatch]:
        """Yield the answer in batches, however large it is."""

    async def save(
        self, sql: str, file_format: str, path: str, settings: Settings | None = None, packing: str = ""
    ) -> int:
        """Write the answer to a new file in one of ClickHouse's formats, perhaps packed; return its size in bytes."""

    async def insert(self, table: str, data: pa.Table, *, token: str | None = None) -> int:
        """Insert an Arrow table by the names of its columns, all of it or nothing; return the number of rows.

        If the table remembers the tokens of its inserts, a repeated token inserts nothing.
        """

    async def close(self) -> None:
        """Close the connections."""
