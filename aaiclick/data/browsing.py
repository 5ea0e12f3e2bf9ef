"""A look into an Object from outside: rows by plain conditions, never by SQL, and never more than was allowed."""

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
"""What one look may cost ClickHouse; beyond it is refused."""

OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Condition(NamedTuple):
    """Rows whose column compares so to a value."""

    column: str
    operator: str
    value: Any


class Order(NamedTuple):
    """Rows in the order of a column."""

    column: str
    descending: bool = False


class Browsed(NamedTuple):
    """Some rows. `complete`: there are no more."""

    names: Sequence[str]
    types: Sequence[str]
    rows: list[tuple[Any, ...]]
    complete: bool


async def describe_object(name: str) -> Schema:
    """The columns of a named Object."""
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
    """Rows of a named Object, within limits of rows, bytes and time."""
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
            rule = f"there is no such column, but: {', '.join(schema.names)[:300]}"
            raise InputError(field="column", value=shown(repr(name)), rule=rule, hint="")


def _compared(condition: Condition) -> Any:
    if condition.operator not in OPERATORS:
        rule = f"it is one of: {' '.join(OPERATORS)}"
        raise InputError(field="operator", value=shown(repr(condition.operator)), rule=rule, hint="")
    return OPERATORS[condition.operator](col(condition.column), condition.value)


# ---------------------------------------------------------------- for whoever has the engine anyway


class Stored(NamedTuple):
    """An Object that stays: its table in ClickHouse, and how large it is, as far as ClickHouse knows."""

    name: str
    table: str
    rows: int | None
    bytes: int | None


async def list_stored() -> list[Stored]:
    """The Objects that stay, for everybody, by name."""
    async with data_context(oplog=False) as context:
        latest = await latest_versions(context.client, "p_")
    return [
        Stored(name, each.table, each.rows, each.bytes)
        for table, each in sorted(latest.items())
        if (name := name_of(table)) is not None
    ]


async def query_rows(query: str, *, limit: int = 100) -> Browsed:
    """Rows that one SELECT gives, within the limits; ClickHouse itself refuses what would change anything.

    For trusted callers: it may read every table. What looks outside of them, as `file` does, is refused. It runs as the
    inner query of ours: INTO OUTFILE is no change to chdb, and would write a file.
    """
    async with data_context(oplog=False) as context:
        inner = await _one_select(context.client, query)
        answer = await context.client.rows(f"SELECT * FROM (\n{inner}\n)", LIMITS | {"limit": limit + 1})  # noqa: S608 (one SELECT, read-only)
    rows = list(zip(*answer.columns, strict=True))
    return Browsed(answer.names, answer.types, rows[:limit], len(rows) <= limit)


async def _one_select(client: DataClient, query: str) -> str:
    """The query as ClickHouse's own parser writes it: one statement, from which nothing can break out."""
    try:
        found = await client.rows(f"SELECT formatQuery({quoting.text(query)})", LIMITS)
    except DataRefused as error:
        cause = str(error.facts["cause"]).partition(": In scope")[0].rstrip(".")
        raise InputError(field="SQL", value=shown(repr(query)), rule=cause[:300], hint="") from None
    inner = str(found.columns[0][0])
    check_calls(inner)
    if not inner.upper().startswith(("SELECT", "WITH", "(")):
        raise InputError(field="SQL", value=shown(repr(query)), rule="one SELECT, which only reads", hint="")
    return inner
