"""Prepares the rows of a query for insertion into a table: columns by name, casts checked where types differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clocks import check_alike
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.parsing.exact_casts import exact_cast
from aaiclick.data.query.expressions import Column, Expression
from aaiclick.data.query.relations import Project, Relation
from aaiclick.data.query.row_order import in_order
from aaiclick.data.sql import quoting
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.schema import Schema
from aaiclick.data.typing.types import clock_of_type
from aaiclick.errors import InputError
from aaiclick.urls import shown


class Insertion(NamedTuple):
    """A query whose columns have the names and types of a table's columns."""

    columns: str
    query: str
    taken: Project
    """The source column of each column of the table."""

    def statement(self, table: str) -> str:
        """Return the INSERT statement for a table of these columns."""
        return f"INSERT INTO {quoting.name(table)} ({self.columns}) {self.query}"


async def insertion(
    client: DataClient, relation: Relation, schema: Schema, hint: str = "Choose or rename columns first."
) -> Insertion:
    """Return how rows of a relation are inserted as rows of this schema, in their order if they have one.

    Raise InputError if the columns do not match.
    """
    query = to_sql(in_order(relation))
    found = await client.rows(f"DESCRIBE TABLE ({query})")
    types = dict(zip(found.columns[0], found.columns[1], strict=True))
    pairs = _pairs(types, schema, hint)
    listed = ", ".join(_cast(theirs, types[theirs], schema[mine].type) for mine, theirs in pairs.items())
    taken: dict[str, Expression] = {mine: Column(theirs) for mine, theirs in pairs.items()}
    rows = f"SELECT {listed} FROM ({query})"  # noqa: S608 (quoted, and compiled)
    return Insertion(", ".join(map(quoting.name, pairs)), rows, Project(relation, taken))


def _pairs(types: Mapping[str, str], schema: Schema, hint: str) -> dict[str, str]:
    """Return the source column by target column: equal names, or the only column of each."""
    if len(types) == 1 and len(schema) == 1:
        return {schema.names[0]: next(iter(types))}
    missing = [name for name in schema.names if name not in types and not parse(schema[name].type).is_nullable]
    unexpected = [name for name in types if name not in schema]
    if missing or unexpected:
        rule = f"missing: {', '.join(missing) or 'none'}; unexpected: {', '.join(unexpected) or 'none'}"
        raise InputError(field="insert", value=", ".join(types), rule=rule, hint=hint)
    return {name: name for name in schema.names if name in types}


def _cast(name: str, has: str, wanted: str) -> str:
    quoted = quoting.name(name)
    if has == wanted:
        return quoted
    clock = clock_of_type(has)
    check_alike(f"insert, column {shown(name)}", clock, clock_of_type(wanted))
    return exact_cast(quoted, wanted, clock)
