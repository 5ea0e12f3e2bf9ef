"""Types that values do not determine: those of columns with only None, empty lists or empty dicts.

The unknown part of such a type is `Nothing`: `Nullable(Nothing)`, `Array(Nothing)`, `Array(Array(Nothing))`. Other rows
may determine it. Until then the column is stored with a number type in that place, of which it has no values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType, NoneType
from typing import Any

from aaiclick.data.sql import quoting
from aaiclick.data.typing.common_types import NOTHING
from aaiclick.data.typing.grammar import Type, nullable
from aaiclick.data.typing.inference import DEPTH_MAX, PLAIN, Unfit, plain

ONLY_NONE = nullable(NOTHING)

_PLACEHOLDER = Type("UInt8")
_TEXT = Type("String")

Untyped = Mapping[str, str]
"""Columns whose type is not fully known, and their types as far as known."""

ALL_TYPED: Untyped = MappingProxyType({})


def unknown_kind(column: list[Any]) -> Type | None:
    """Return the type as far as the values tell it; None if they tell all of it, or inference is to refuse them."""
    return None if any(_tells(value, 0) for value in column) else _kind(column)


def _tells(value: Any, depth: int) -> bool:
    if value is None:
        return False
    if depth > DEPTH_MAX:
        return True
    if isinstance(value, list | tuple):
        return any(_tells(each, depth + 1) for each in value)
    if isinstance(value, Mapping):
        return any(_tells(each, depth + 1) for each in value.values())
    if type(value) in PLAIN:
        return True
    try:
        (told,), _ = plain([value])  # an empty numpy array, or a missing value of pandas
    except Unfit:
        return True
    return _tells(told, depth + 1)


def _kind(column: list[Any]) -> Type | None:
    if not column:
        return NOTHING
    column, kinds = plain(column)
    if kinds == {NoneType}:
        return ONLY_NONE
    if kinds <= {list, tuple}:
        return _around(Type("Array", (NOTHING,)), column)
    if kinds == {dict} and all(isinstance(key, str) for row in column for key in row):
        return _around(Type("Map", (_TEXT, NOTHING)), [row.values() for row in column])
    return None


def _around(outer: Type, rows: Iterable[Iterable[Any]]) -> Type | None:
    inner = _kind(list(chain.from_iterable(rows)))
    return None if inner is None else Type(outer.name, (*outer.parts[:-1], inner))


def is_unknown(kind: Type) -> bool:
    """Return whether a part of the type is `Nothing`."""
    return kind.name == NOTHING.name or any(map(is_unknown, kind.parts))


def stored_kind(kind: Type) -> Type:
    """Return the type of a ClickHouse column that can store such values."""
    if kind.name == NOTHING.name:
        return _PLACEHOLDER
    return Type(kind.name, tuple(map(stored_kind, kind.parts))) if is_unknown(kind) else kind


def read_unknown(text: str) -> Type:
    """Parse the text of an undetermined type, which `grammar.parse` does not accept."""
    if text == NOTHING.name:
        return NOTHING
    name, _, inside = text.removesuffix(")").partition("(")
    if name == "Map":
        return Type(name, (_TEXT, read_unknown(inside.removeprefix("String, "))))
    assert name in ("Array", "Nullable"), f"{text!r} cannot be the type of values whose type is unknown"
    return Type(name, (read_unknown(inside),))


def known_as(value: str, kind: Type, wanted: Type, depth: int = 0) -> str:
    """Return SQL that converts a value of an undetermined type to the type `wanted`."""
    if kind == NOTHING:  # no value has this type
        return f"defaultValueOfTypeName({quoting.text(str(wanted))})"
    if kind == ONLY_NONE:
        return f"CAST(NULL, {quoting.text(str(wanted))})"
    inner, as_wanted = kind.parts[-1], wanted.parts[-1]
    if inner == NOTHING:
        empty = "[]" if kind.name == "Array" else "map()"
        return f"CAST({empty}, {quoting.text(str(wanted))})"
    each = known_as(f"v{depth}", inner, as_wanted, depth + 1)
    if kind.name == "Array":
        return f"arrayMap(v{depth} -> {each}, {value})"
    return f"mapApply((k{depth}, v{depth}) -> (k{depth}, {each}), {value})"
