"""Describes the table of an Object before it is created."""

from __future__ import annotations

from aaiclick.data.clients.tables import NewTable
from aaiclick.data.sql import quoting
from aaiclick.data.tables.storage import PLAINLY, Storage
from aaiclick.data.typing.schema import Schema
from aaiclick.errors import ValueExposed
from aaiclick.telemetry.masks import is_mentioned


def new_table(table: str, schema: Schema, comment: str, *, granule: int = 0, storage: Storage = PLAINLY) -> NewTable:
    """Return the description of an Object's new table; raise ValueExposed if it would contain a masked value.

    Making a table whose name is taken fails: no two Objects share a table unknowingly.

    With a granule, the table is sorted by its first column, and read in granules of so many rows. If the schema has no
    columns, the table gets those of the query that fills it.
    """
    order = quoting.name(schema.names[0]) if granule else storage.order(schema.ordered)
    columns = schema.column_definitions() if schema.names and not granule else ""
    if is_mentioned(f"{table} {columns} {order} {storage.engine} {storage.partition}"):
        raise exposed()
    names = schema.names
    return NewTable(table, order, comment, columns, names, not granule, granule, storage.engine, storage.partition)


def exposed() -> ValueExposed:
    """Return the error for a masked value in the name, a column or a type of an Object."""
    return ValueExposed(what="The name, a column or a type of an Object", hint="Call it otherwise.")
