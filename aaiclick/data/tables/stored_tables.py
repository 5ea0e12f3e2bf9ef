"""Reads tables as ClickHouse stores them: their schemas and relations; and how a query is stored as a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from aaiclick.data.clients.contract import DataClient, Settings
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.query.expressions import Column
from aaiclick.data.query.relations import Project, Relation, Table, is_ordered, is_sorted, with_order
from aaiclick.data.query.row_order import in_order, is_as_inserted, is_below
from aaiclick.data.sql import quoting
from aaiclick.data.typing.schema import VALUE, Field, Schema, Shape, read_schema
from aaiclick.data.typing.types import has_naive, read_kind
from aaiclick.errors import InputError

SCHEMAS_AT_ONCE = 500

AS_SORTED = {"max_insert_threads": 1}
"""Settings with which sorted rows are stored in their order."""

AS_BELOW = {**AS_SORTED, "max_threads": 1}
"""Settings with which the rows of a union of tables are stored in the order in which they were inserted."""


class Form(NamedTuple):
    """How a relation is stored: the query, the schema (without columns, which the query gives), and the settings."""

    relation: Relation
    query: str
    schema: Schema
    settings: Settings | None


def form_of(relation: Relation, shape: Shape) -> Form:
    """Return how a relation of a shape is stored, in its order if it has one."""
    if shape in ("scalar", "list") and relation.names != (VALUE,):
        relation = Project(relation, {VALUE: Column(relation.names[0])})
    ordered, settings = is_ordered(relation), AS_BELOW if is_below(relation) and is_as_inserted(relation) else None
    if not ordered:
        relation = in_order(relation)
    query = to_sql(with_order(relation) if ordered else relation)
    return Form(relation, query, Schema((), shape, ordered), settings or (AS_SORTED if is_sorted(relation) else None))


def table_of(name: str, schema: Schema, keeper: object = None) -> Table:
    """Return the relation that reads a table; it holds a reference to `keeper`, so that the table is not dropped."""
    naive = {field.name: field.type for field in schema.fields if has_naive(field.type)}
    return Table(name, tuple(map(_column, schema.fields)), schema.ordered, keeper, naive, schema.replacing, schema)


def _column(field: Field) -> Column:
    with suppress(InputError):  # a ClickHouse type that is not known here
        kind = read_kind(field.type)
        return Column(field.name, kind.bare.name == "Bool", kind.clock, kind)
    return Column(field.name)


async def read_schemas(client: DataClient, tables: Sequence[str]) -> dict[str, Schema]:
    """Return the schemas of the tables that exist, by name, as ClickHouse reports them."""
    found: dict[str, Schema] = {}
    for start in range(0, len(tables), SCHEMAS_AT_ONCE):
        which = f"({', '.join(map(quoting.text, tables[start : start + SCHEMAS_AT_ONCE]))})"
        answer = await client.rows(
            "SELECT table, name, type, comment FROM system.columns WHERE database = currentDatabase()"  # noqa: S608 (its parts are quoted)
            f" AND table IN {which} ORDER BY table, position UNION ALL SELECT name, '', engine, comment"
            f" FROM system.tables WHERE database = currentDatabase() AND name IN {which}"
        )
        columns: dict[str, list[tuple[str, str, str]]] = {}
        told: dict[str, tuple[str, str]] = {}
        for table, name, kind, comment in zip(*answer.columns, strict=True):
            if name:
                columns.setdefault(table, []).append((name, kind, comment))
            else:
                told[table] = (comment, kind)
        found |= {table: read_schema(columns.get(table, []), *each) for table, each in told.items()}
    return found
