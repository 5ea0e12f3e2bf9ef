"""Resolve dotted names such as `m.x` against columns that hold records, lists of records, or maps.

`m.x` is the field `x` of the record in column `m`, the list of that field of each record in a list, or the value under
the key `x` of a map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aaiclick.data.operations import Operation
from aaiclick.data.query.expressions import Call, Expression, deeper
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import maybe
from aaiclick.data.typing.grammar import Type

_HAS_NONE = {False: "isNull({0})", True: "arrayExists(record -> isNull(record), {0})"}
"""SQL conditions that a record is NULL, by whether the value is a list of records: then one element is enough."""


def at_path(columns: Mapping[str, Expression], name: str) -> Expression | None:
    """Return the column called `name`, or the expression that `name` leads to as a path into a column.

    None if there is neither. A column of exactly that name comes first; then the longest column name that is a prefix.
    """
    found = columns.get(name)
    if found is not None or "." not in name:
        return found
    places = [place for place, sign in enumerate(name) if sign == "."]
    for place in reversed(places):
        column = columns.get(name[:place])
        if column is not None:
            return _within(column, name[place + 1 :])
    return None


def with_paths(columns: Mapping[str, Expression], names: Iterable[str]) -> Mapping[str, Expression]:
    """Return `columns`, with an entry added for each of `names` that is a path into one of them."""
    more = {name: found for name in names if name not in columns and (found := at_path(columns, name)) is not None}
    return {**columns, **more} if more else columns


def _within(value: Expression, path: str) -> Expression | None:
    """Return the expression at `path` inside `value`, or None.

    Longer keys are tried first, since keys may contain dots themselves. A map may hold any key: there the first name is
    the key if the map's values are records or maps, otherwise all of `path` is.
    """
    ends = [len(path), *(place for place, sign in reversed(list(enumerate(path))) if sign == ".")]
    if value.kind is not None and value.kind.name == "Map":  # any key might be there
        ends = [ends[-1] if value.kind.parts[1].bare.name in ("Tuple", "Map") else ends[0]]
    for end in ends:
        part = _part(value, path[:end])
        if part is not None:
            return part if end == len(path) else _within(part, path[end + 1 :])
    return None


def _part(value: Expression, key: str) -> Expression | None:
    kind = value.kind
    if kind is None or not key:
        return None
    quoted = quoting.text(key).replace("{", "{{").replace("}", "}}")
    inner = kind.parts[0] if kind.name == "Array" else kind
    if inner.bare.name == "Tuple" and key in inner.bare.labels:
        part = inner.bare.parts[inner.bare.labels.index(key)]
        part = (maybe(part) or part) if inner.is_nullable else part
        found = Type("Array", (part,)) if kind.name == "Array" else part
        text = f"tupleElement({{0}}, {quoted})"
        if inner.is_nullable and not part.is_nullable:
            has_none = _HAS_NONE[kind.name == "Array"]
            missing = f"throwIf({has_none}, 'a record is NULL, and a {part.name} in it cannot be')"
            text = f"if({missing} = 0, {text}, {text})"
        return _called(value, text, found)
    if kind.name == "Map" and kind.parts[0].bare.name == "String":
        return _in_map(value, quoted, kind.parts[1])
    return None


def _in_map(value: Expression, quoted: str, kind: Type) -> Expression:
    """Read a key of a map: NULL in rows without it. A list or map cannot be NULL, so such rows raise an error."""
    there = f"mapContains({{0}}, {quoted})"
    if kind.name in ("Array", "Map"):
        missing = f"throwIf(NOT {there}, 'a row has no such key, and a {kind.name} cannot be NULL')"
        return _called(value, f"if({missing} = 0, {{0}}[{quoted}], {{0}}[{quoted}])", kind)
    return _called(value, f"if({there}, {{0}}[{quoted}], NULL)", maybe(kind) or kind)


def _called(value: Expression, text: str, kind: Type) -> Expression:
    truth = kind.bare.name == "Bool"
    operation = Operation(text, truth=truth, makes=kind.clock)
    return Call(operation, (value,), text, truth, deeper([value]), kind.clock, kind)
