"""Types that values do not tell: those of nothing but None, of empty lists and of empty dicts.

Such a type has `Nothing` where something is not known: `Nullable(Nothing)`, `Array(Nothing)`, `Array(Array(Nothing))`.
Other rows may tell it. Until then a column is stored with a number in its place, which none of its values has.
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
"""Columns of which something is not known, and the types that they have as far as it is."""

ALL_TYPED: Untyped = MappingProxyType({})


def unknown_kind(column: list[Any]) -> Type | None:
    """The type of values as far as they tell it; None if they tell all of it, or are to be refused."""
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
        (told,), _ = plain([value])  # an empty array of numpy, or what pandas has for None
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
    """Whether a type has a part that is not known."""
    return kind.name == NOTHING.name or any(map(is_unknown, kind.parts))


def stored_kind(kind: Type) -> Type:
    """The type of a column that can hold such values."""
    if kind.name == NOTHING.name:
        return _PLACEHOLDER
    return Type(kind.name, tuple(map(stored_kind, kind.parts))) if is_unknown(kind) else kind


def read_unknown(text: str) -> Type:
    """Such a type from its text."""
    if text == NOTHING.name:
        return NOTHING
    name, _, inside = text.removesuffix(")").partition("(")
    if name == "Map":
        return Type(name, (_TEXT, read_unknown(inside.removeprefix("String, "))))
    assert name in ("Array", "Nullable"), f"{text!r} is no type of values that do not tell theirs"
    return Type(name, (read_unknown(inside),))


def known_as(value: str, kind: Type, wanted: Type, depth: int = 0) -> str:
    """SQL for a value of such a type, as one of a type that is known."""
    if kind == NOTHING:  # there is none
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
