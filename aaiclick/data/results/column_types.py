"""The columns of a query that has not run: names and types, from ClickHouse's DESCRIBE, which reads no row."""

from __future__ import annotations

from contextlib import suppress

from aaiclick.data.clients.contract import DataClient, Rows
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.query.relations import Relation
from aaiclick.data.query.relations import is_ordered as has_order
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.schema import Field, Schema, Shape
from aaiclick.data.typing.types import read_type
from aaiclick.errors import InputError

_NUMBERS = ("Int", "UInt", "Float", "BFloat", "Decimal")
_WITHOUT_ORDER = ("Map", "JSON", "Object", "Variant", "Dynamic", "AggregateFunction")


def schema(client: DataClient, relation: Relation, shape: Shape) -> Schema:
    """Return the columns that a query would give. Blocks the calling thread while ClickHouse is asked."""
    found = _types(client.rows_now(_question(relation)))
    return Schema(tuple(Field(name, kind) for name, kind in found.items()), shape, has_order(relation))


async def types(client: DataClient, relation: Relation) -> dict[str, str]:
    """Return the types of the columns that a query would give, by name."""
    return _types(await client.rows(_question(relation)))


def _question(relation: Relation) -> str:
    return f"DESCRIBE TABLE ({to_sql(relation)})"


def _types(found: Rows) -> dict[str, str]:
    return {name: _spelled(kind) for name, kind in zip(found.columns[0], found.columns[1], strict=True)}


def _spelled(kind: str) -> str:
    with suppress(InputError):  # a type that is not known here: keep ClickHouse's spelling
        return read_type(kind)
    return kind


def is_number(kind: str) -> bool:
    """Return whether the values of a type are numbers."""
    return _bare(kind).startswith(_NUMBERS)


def is_ordered(kind: str) -> bool:
    """Return whether the values of a type can be compared with `<`."""
    return not _bare(kind).startswith(_WITHOUT_ORDER)


def _bare(kind: str) -> str:
    with suppress(InputError):
        return parse(kind).bare.name
    return kind
