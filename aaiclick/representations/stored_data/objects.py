"""Objects: their names, columns, rows and versions."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from aaiclick.representations.fields import Time, time_text

if TYPE_CHECKING:
    from aaiclick.data.browsing import Browsed, Stored
    from aaiclick.data.typing.schema import Schema
    from aaiclick.data.versions.catalog import Version


class ObjectList(TypedDict):
    """The names of the persistent Objects."""

    objects: list[str]


class StoredAnswer(TypedDict):
    """A persistent Object, with its table and size."""

    name: str
    table: str
    rows: int | None
    bytes: int | None


class StoredList(ObjectList):
    """The persistent Objects with their tables, for commands with direct access to the engine."""

    stored: list[StoredAnswer]


class ColumnAnswer(TypedDict):
    """A column: its name and its ClickHouse type."""

    name: str
    type: str


class SchemaAnswer(TypedDict):
    """The shape and columns of an Object."""

    name: str
    shape: str
    ordered: bool
    columns: list[ColumnAnswer]


class RowsAnswer(TypedDict):
    """Rows of an Object. `complete` tells whether these are all; values that JSON cannot express are strings."""

    columns: list[ColumnAnswer]
    rows: list[list[Any]]
    complete: bool


class VersionAnswer(TypedDict):
    """An existing version of an Object."""

    version: int
    made_at: Time | None
    operation: str
    rows: int | None
    bytes: int | None


class VersionList(TypedDict):
    """The versions of an Object, oldest first."""

    name: str
    versions: list[VersionAnswer]


def stored_list(found: Sequence[Stored]) -> StoredList:
    """Return the Objects that stay, with their tables."""
    stored = [StoredAnswer(name=each.name, table=each.table, rows=each.rows, bytes=each.bytes) for each in found]
    return StoredList(objects=[each.name for each in found], stored=stored)


def schema_answer(name: str, schema: Schema) -> SchemaAnswer:
    """Return what an Object holds."""
    columns = _columns((field.name, field.type) for field in schema.fields)
    return SchemaAnswer(name=name, shape=schema.shape, ordered=schema.ordered, columns=columns)


def rows_answer(found: Browsed) -> RowsAnswer:
    """Return rows as JSON can say them."""
    columns = _columns(zip(found.names, found.types, strict=True))
    return RowsAnswer(columns=columns, rows=plain_rows(found), complete=found.complete)


def plain_rows(found: Browsed) -> list[list[Any]]:
    """Return the rows alone, as JSON can say them."""
    return [[plain_value(value) for value in row] for row in found.rows]


def version_list(name: str, found: Sequence[Version]) -> VersionList:
    """Return the versions of an Object."""
    return VersionList(name=name, versions=[_version(each) for each in found])


def plain_value(value: Any) -> Any:
    """Return a value of ClickHouse's as JSON can say it; what it cannot say is written as a string."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return value.encode(errors="replace").decode()
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case list() | tuple() | set() | frozenset():
            return [plain_value(each) for each in value]
        case dict():
            return {str(plain_value(key)): plain_value(each) for key, each in value.items()}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _columns(found: Iterable[tuple[str, str]]) -> list[ColumnAnswer]:
    return [ColumnAnswer(name=name, type=kind) for name, kind in found]


def _version(each: Version) -> VersionAnswer:
    made_at = None if each.made_at is None else time_text(each.made_at)
    return VersionAnswer(
        version=each.number, made_at=made_at, operation=each.operation, rows=each.rows, bytes=each.bytes
    )
