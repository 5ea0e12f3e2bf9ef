"""What the data room asks of ClickHouse, wherever it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from aaiclick.data.clients.tables import Tables

Settings = Mapping[str, Any]


class Rows(NamedTuple):
    """A small answer, as Python values."""

    names: Sequence[str]
    types: Sequence[str]
    columns: Sequence[Sequence[Any]]


class DataClient(Protocol):
    """Runs statements, several at once; none of its calls blocks the event loop."""

    tables: Tables
    """How tables are made where it leads."""

    async def command(self, sql: str, settings: Settings | None = None) -> None:
        """Run a statement that answers nothing."""

    async def rows(self, sql: str, settings: Settings | None = None) -> Rows:
        """The whole answer as Python values, column by column."""

    async def make(self, sql: str, look: str, settings: Settings | None = None) -> Rows:
        """Run a statement that answers nothing and then, without a pause, one that looks at what it made."""

    def rows_now(self, sql: str, settings: Settings | None = None) -> Rows:
        """`rows`, for where nothing can be awaited: it blocks."""

    async def arrow(self, sql: str, settings: Settings | None = None) -> pa.Table:
        """The whole answer as an Arrow table."""

    def batches(self, sql: str, settings: Settings | None = None) -> AsyncIterator[pa.RecordBatch]:
        """The answer piece by piece, however large."""

    async def save(
        self, sql: str, file_format: str, path: str, settings: Settings | None = None, packing: str = ""
    ) -> int:
        """Write the answer into a file, in one of ClickHouse's formats, perhaps packed; gives the number of bytes."""

    async def insert(self, table: str, data: pa.Table, *, token: str | None = None) -> int:
        """Insert an Arrow table by the names of its columns, all of it or nothing; gives the number of rows.

        Where the table keeps a window of tokens, a repeated token inserts nothing again.
        """

    async def close(self) -> None:
        """Give everything back."""
