"""The storage options of a table: its engine, its sort key and its partitions.

Engines that silently drop or change rows are refused, except ReplacingMergeTree when it is asked for by name: readers
always get the last row of each key of it, whether or not ClickHouse has dropped the others yet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from aaiclick.data.sql import quoting
from aaiclick.data.typing.grammar import INTEGERS, PLAIN, Type, parse
from aaiclick.data.typing.schema import ORDER, Schema, is_replacing
from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

ENGINES = ("MergeTree", "ReplacingMergeTree")
REPLACING = "ReplacingMergeTree"

_ENGINE = re.compile(r"([A-Za-z]+)(?:\((.*)\))?", re.DOTALL)
_PERIOD = re.compile(r"(toYear|toYYYYMM|toYYYYMMDD)\((.+)\)", re.DOTALL)
_SORTED = {*PLAIN, "FixedString", "DateTime", "DateTime64", "Decimal", "Enum8", "Enum16"}
_TIMES = ("Date", "Date32", "DateTime", "DateTime64")
_VERSIONS = {
    *(name for name in INTEGERS if name.startswith("U") or name in ("Int8", "Int16", "Int32", "Int64")),
    *_TIMES,
}


@dataclass(frozen=True)
class Storage:
    """The storage of a table; the default is a MergeTree without sort key and partitions."""

    engine: str = "MergeTree"
    order_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    """SQL expressions, checked and quoted."""

    @property
    def replaces(self) -> bool:
        """Whether only the last of the rows with the same key is kept."""
        return is_replacing(self.engine)

    @property
    def partition(self) -> str:
        """The expression after PARTITION BY; empty if the table has no partitions."""
        return f"({', '.join(self.partition_by)})" if self.partition_by else ""

    def order(self, ordered: bool) -> str:
        """Return the expression after ORDER BY; an `ordered` table without a sort key is sorted by the column ORDER."""
        if self.order_by:
            return f"({', '.join(map(quoting.name, self.order_by))})"
        return quoting.name(ORDER) if ordered else "tuple()"


PLAINLY = Storage()


def read_storage(
    schema: Schema,
    engine: str = "MergeTree",
    order_by: str | Sequence[str] = (),
    partition_by: str | Sequence[str] = (),
) -> Storage:
    """Return the storage options, checked against the columns; raise InputError for a bad one."""
    keys = [order_by] if isinstance(order_by, str) else list(order_by)
    found = _engine(schema, engine)
    if len(set(map(str, keys))) < len(keys):
        _refuse("order_by", keys, "name each column only once")
    for key in keys:
        kind = _kind(schema, "order_by", key)
        if is_replacing(found):
            _refuse_floats("order_by", key, kind)
    if is_replacing(found) and not keys:
        _refuse(
            "engine",
            engine,
            "it keeps one row for each key, and no key is given",
            "Give order_by='id', the columns of the key.",
        )
    if is_replacing(found) and schema.ordered:
        _refuse("order", True, "replaced rows have no fixed order", "Leave order=True out.")
    periods = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    return Storage(found, tuple(keys), tuple(_period(schema, each) for each in periods))


def _engine(schema: Schema, given: object) -> str:
    found = _ENGINE.fullmatch(given) if isinstance(given, str) else None
    name, inside = (found[1], found[2]) if found else ("", None)
    if name not in ENGINES:
        hint = did_you_mean(name, ENGINES)
        if name.endswith("MergeTree"):
            hint = "It silently drops or changes rows when ClickHouse merges them: compute totals with group_by."
        _refuse("engine", given, f"it must be one of {', '.join(ENGINES)}", hint)
    if not inside:
        return name
    if name != REPLACING:
        _refuse("engine", given, f"{name} takes no arguments", "")
    version = inside.strip()
    kind = _kind(schema, "engine", version)
    if kind.name not in _VERSIONS:
        _refuse("engine", given, f"a version must be a whole number of at most 64 bits, a day or a time, not a {kind}")
    return f"{name}({quoting.name(version)})"


def _kind(schema: Schema, field: str, column: object) -> Type:
    """Return the type of a column; raise InputError if rows cannot be sorted by it."""
    if not isinstance(column, str) or column not in schema:
        names = schema.names
        hint = did_you_mean(str(column), names) or f"Its columns: {shown(', '.join(names))}."
        _refuse(field, column, "it must be the name of a column", hint)
    kind = parse(schema[column].type)
    if kind.is_nullable:
        _refuse(
            field,
            column,
            f"it is {kind}, and None cannot be sorted among other values",
            "Use a type that is not Nullable.",
        )
    if kind.bare.name not in _SORTED:
        _refuse(field, column, f"a table cannot be sorted by a {kind.name}")
    return kind.bare


def _refuse_floats(field: str, column: str, kind: Type) -> None:
    if kind.name.startswith("Float"):
        _refuse(field, column, "floats do not distinguish rows: 0.0 equals -0.0, and NaN equals nothing")


def _period(schema: Schema, given: object) -> str:
    found = _PERIOD.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        kind = _kind(schema, "partition_by", given)
        _refuse_floats("partition_by", str(given), kind)
        return quoting.name(str(given))
    column = found[2].strip()
    kind = _kind(schema, "partition_by", column)
    if kind.name not in _TIMES or kind.clock == "naive":
        _refuse(
            "partition_by",
            given,
            "it needs a Date, or a time with a zone",
            "Give the time a zone, or name the column itself.",
        )
    return f"{found[1]}({quoting.name(column)})"


def _refuse(field: str, value: object, rule: str, hint: str = "") -> NoReturn:
    raise InputError(field=field, value=shown(repr(value)), rule=rule, hint=hint)
