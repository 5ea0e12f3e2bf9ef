"""Read rows of Objects for outside callers: by plain conditions instead of SQL, within limits of rows, bytes and time.

`list_stored` and `query_rows` are for callers that may use the engine directly in any case.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.context import data_context
from aaiclick.data.frames import Frame
from aaiclick.data.query.column_terms import col
from aaiclick.data.query.row_order import in_order
from aaiclick.data.sql import quoting
from aaiclick.data.sql.closed_functions import check_calls
from aaiclick.data.tables.table_names import name_of
from aaiclick.data.typing.schema import Schema
from aaiclick.data.versions.catalog import latest_versions
from aaiclick.errors import DataRefused, InputError
from aaiclick.urls import shown

SECONDS_MAX = 10
BYTES_MAX = 10_000_000
LIMITS = {
    "readonly": 1,
    "max_execution_time": SECONDS_MAX,
    "max_result_bytes": BYTES_MAX,
    "result_overflow_mode": "throw",
    "max_memory_usage": 2_000_000_000,
}
"""ClickHouse settings of the queries that read rows; a query that exceeds one is refused."""

OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Condition(NamedTuple):
    """A comparison of a column with a value; `operator` is a key of OPERATORS."""

    column: str
    operator: str
    value: Any


class Order(NamedTuple):
    """A column to sort by."""

    column: str
    descending: bool = False


class Browsed(NamedTuple):
    """Rows, with the names and types of their columns. `complete` is False if the limit cut off more rows."""

    names: Sequence[str]
    types: Sequence[str]
    rows: list[tuple[Any, ...]]
    complete: bool


async def describe_object(name: str) -> Schema:
    """Return the columns of a global Object."""
    async with data_context(oplog=False) as context:
        return (await context.open_object(name)).schema


async def browse_object(
    name: str,
    *,
    columns: Sequence[str] = (),
    where: Sequence[Condition] = (),
    order_by: Sequence[Order] = (),
    limit: int = 100,
) -> Browsed:
    """Return up to `limit` rows of a global Object, within LIMITS."""
    async with data_context(oplog=False) as context:
        found = await context.open_object(name)
        _check_columns(found.schema, [*columns, *(each.column for each in where), *(each.column for each in order_by)])
        frame: Frame = found
        for condition in where:
            frame = frame.where(_compared(condition))
        if order_by:
            keys = [each.column for each in order_by]
            frame = frame.order_by(*keys, descending=[each.descending for each in order_by])
        frame = frame.limit(limit + 1)
        if columns:
            frame = frame[list(dict.fromkeys(columns))]
        answer = await context.client.rows(to_sql(in_order(frame._relation)), LIMITS)
        rows = list(zip(*answer.columns, strict=True))
        return Browsed(answer.names, answer.types, rows[:limit], len(rows) <= limit)


def _check_columns(schema: Schema, names: Sequence[str]) -> None:
    known = frozenset(schema.names)
    for name in names:
        if name not in known:
            rule = f"there is no such column; the columns are: {', '.join(schema.names)[:300]}"
            raise InputError(field="column", value=shown(repr(name)), rule=rule, hint="")


def _compared(condition: Condition) -> Any:
    if condition.operator not in OPERATORS:
        rule = f"it must be one of {' '.join(OPERATORS)}"
        raise InputError(field="operator", value=shown(repr(condition.operator)), rule=rule, hint="")
    return OPERATORS[condition.operator](col(condition.column), condition.value)


# ---------------------------------------------------------------- for callers that may use the engine directly


class Stored(NamedTuple):
    """A global Object: its table in ClickHouse, and its size, None where ClickHouse does not know it."""

    name: str
    table: str
    rows: int | None
    bytes: int | None


async def list_stored() -> list[Stored]:
    """Return the global Objects, sorted by name."""
    async with data_context(oplog=False) as context:
        latest = await latest_versions(context.client, "p_")
    return [
        Stored(name, each.table, each.rows, each.bytes)
        for table, each in sorted(latest.items())
        if (name := name_of(table)) is not None
    ]


async def query_rows(query: str, *, limit: int = 100) -> Browsed:
    """Return up to `limit` rows of one SELECT, within LIMITS. ClickHouse refuses statements that change anything.

    For trusted callers: the query may read every table. Functions that reach outside of the tables, such as `file`, are
    refused. The query runs as a subquery of another: chdb does not count INTO OUTFILE as a change, and would write the
    file.
    """
    async with data_context(oplog=False) as context:
        inner = await _one_select(context.client, query)
        answer = await context.client.rows(f"SELECT * FROM (\n{inner}\n)", LIMITS | {"limit": limit + 1})  # noqa: S608 (one SELECT, read-only)
    rows = list(zip(*answer.columns, strict=True))
    return Browsed(answer.names, answer.types, rows[:limit], len(rows) <= limit)


async def _one_select(client: DataClient, query: str) -> str:
    """Return the query as ClickHouse's own parser formats it: one statement, which is safe to use as a subquery."""
    try:
        found = await client.rows(f"SELECT formatQuery({quoting.text(query)})", LIMITS)
    except DataRefused as error:
        cause = str(error.facts["cause"]).partition(": In scope")[0].rstrip(".")
        raise InputError(field="SQL", value=shown(repr(query)), rule=cause[:300], hint="") from None
    inner = str(found.columns[0][0])
    check_calls(inner)
    if not inner.upper().startswith(("SELECT", "WITH", "(")):
        raise InputError(field="SQL", value=shown(repr(query)), rule="it must be one SELECT that only reads", hint="")
    return inner
