"""`Evaluation`: the methods of a frame that run its query and read, store or export the answer.

Building a frame runs nothing: its query runs when one of these methods asks for the answer.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import timedelta
from decimal import Decimal
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.query.relations import Relation
from aaiclick.data.results import column_types, query_costs, reading
from aaiclick.data.results.query_costs import Stats
from aaiclick.data.tables.refresh import Refresh
from aaiclick.data.tables.table_names import Scope
from aaiclick.data.typing.schema import Schema, Shape
from aaiclick.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from aaiclick.data.context import Context
    from aaiclick.data.frames import Query
    from aaiclick.data.objects import Object


class Evaluation:
    """The base of all frames: the query that gives the rows, the shape of their value, and the context that runs it."""

    __slots__ = ("__weakref__", "_context", "_relation", "_seen_schema", "_seen_stats", "_shape")

    def __init__(self, context: Context, relation: Relation, shape: Shape) -> None:
        self._context, self._relation, self._shape = context, relation, shape
        self._seen_schema: Schema | None = None
        self._seen_stats: Stats | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return self._relation.names

    @property
    def shape(self) -> Shape:
        """The form of the value in Python: scalar, list, record (a dict of values) or table (a dict of lists)."""
        return self._shape

    async def data(self, orient: Literal["records"] | None = None) -> Any:
        """Run the query and return its answer as Python values; with orient="records", as a list of dicts."""
        return await reading.data(self._context.client, self._relation, self._shape, orient)

    async def arrow(self) -> pa.Table:
        """Run the query and return its answer as an Arrow table."""
        return await reading.arrow(self._context.client, self._relation)

    async def df(self) -> Any:
        """Run the query and return its answer as a pandas DataFrame; needs the `pandas` extra."""
        return await reading.df(self._context.client, self._relation)

    async def count(self) -> int:
        """Return the number of rows."""
        return await reading.count(self._context.client, self._relation)

    async def markdown(self, limit: int = 20) -> str:
        """Return the first `limit` rows as a table in Markdown."""
        if type(limit) is not int or limit < 0:
            raise InputError(field="limit", value=repr(limit), rule="it must be a whole number, 0 or more", hint="")
        return await reading.markdown(self._context.client, self._relation, limit)

    async def export(
        self, path: str | PathLike[str], file_format: str | None = None, compression: str | None = None
    ) -> int:
        """Write all rows to a new file and return its size in bytes. The ending tells the format and the compression.

        `compression` is the codec of Parquet's columns, or how a file of another format is compressed.
        """
        return await reading.export(self._context.client, self._relation, str(path), file_format, compression)

    @property
    def schema(self) -> Schema:
        """The columns and their types. The query does not run; ClickHouse is asked for the types once."""
        if self._seen_schema is None:
            self._seen_schema = column_types.schema(self._context.client, self._relation, self._shape)
        return self._seen_schema

    async def stats(self) -> Stats:
        """Run the query, discard its rows, and return the cost: rows and bytes read, seconds."""
        self._seen_stats = await query_costs.stats(self._context.client, self._relation)
        return self._seen_stats

    def explain(self) -> str:
        """Return the SQL of the query; after `stats()`, with the cost in a comment."""
        text = to_sql(self._relation)
        return text if self._seen_stats is None else f"-- {self._seen_stats}\n{text}"

    async def copy(self, name: str | None = None, *, scope: Scope = "global") -> Object:
        """Make a new table with the same rows; with a name, a persistent Object."""
        return await self.materialize(name, scope=scope)

    async def materialize(
        self,
        name: str | None = None,
        *,
        scope: Scope = "global",
        full_refresh: bool = False,
        incremental_by: str | None = None,
        lookback: timedelta | float | Decimal | None = None,
        partition: tuple[Any, Any] | None = None,
        key: str | Sequence[str] | None = None,
        keep: int | None = None,
    ) -> Object:
        """Run the query into a new table and return its Object; with a name, a persistent one.

        Rows that are sorted or have an order (`order=True`) keep it; many other rows may come in any order.
        Where an Object of that name may exist already, say how its rows change, which makes a new version:
        `full_refresh` replaces all; `incremental_by` replaces those from the column's last value on, or from `lookback`
        before it, or those of a `partition` (start, end); with a `key`, new rows replace those with the same key.
        """
        refresh = Refresh(full_refresh, incremental_by, lookback, partition, key, keep)
        return await self._context.materialize(self._relation, self._shape, name, scope, refresh)

    def __await__(self) -> Generator[Any, None, Object]:
        return self.materialize().__await__()

    def _repr_html_(self) -> str:
        return reading.html(self._context.client, self._relation)

    def __rich__(self) -> str:
        return reading.plain(self._context.client, self._relation)

    def __repr__(self) -> str:
        names = ", ".join(self.columns[:8]) + (", …" if len(self.columns) > 8 else "")
        return f"<{type(self).__name__} {self._shape}: {names}>"

    def _query(self, relation: Relation, shape: Shape | None = None) -> Query:
        """Return a query over another relation in the same context."""
        raise NotImplementedError

    def _is_single(self) -> bool:
        """Return whether the frame is one row, whose values combine with every row of another frame."""
        return self._shape in ("scalar", "record")
