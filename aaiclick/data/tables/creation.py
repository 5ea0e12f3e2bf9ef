"""The table of an Object, as it is to be made."""

from __future__ import annotations

from aaiclick.data.clients.tables import NewTable
from aaiclick.data.sql import quoting
from aaiclick.data.tables.storage import PLAINLY, Storage
from aaiclick.data.typing.schema import Schema
from aaiclick.errors import ValueExposed
from aaiclick.telemetry.masks import is_mentioned


def new_table(table: str, schema: Schema, comment: str, *, granule: int = 0, storage: Storage = PLAINLY) -> NewTable:
    """The table of an Object. A name that is taken is refused: no two share a table unknowingly.

    With a granule, it is sorted by its first column, and so many rows are read at least. Without columns, it has those
    of the query that fills it.
    """
    order = quoting.name(schema.names[0]) if granule else storage.order(schema.ordered)
    columns = schema.column_definitions() if schema.names and not granule else ""
    if is_mentioned(f"{table} {columns} {order} {storage.engine} {storage.partition}"):
        raise exposed()
    names = schema.names
    return NewTable(table, order, comment, columns, names, not granule, granule, storage.engine, storage.partition)


def exposed() -> ValueExposed:
    """The error of a secret in a name."""
    return ValueExposed(what="The name, a column or a type of an Object", hint="Call it otherwise.")
