"""Functions of maps and records, and of JSON texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from aaiclick.data.operations.additions import is_text
from aaiclick.data.operations.operation import Operation, condition, made
from aaiclick.data.operations.row_functions.texts import LONG, braced
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import BOOL, FLOAT, TEXT, Kind, Worded, maybe
from aaiclick.data.typing.grammar import Type
from aaiclick.errors import InputError
from aaiclick.urls import shown

_STEP = re.compile(r"""\.?(?P<name>[^.\[\]"'$]+)|\[(?P<place>-?[0-9]+)\]|\[(?P<mark>["'])(?P<quoted>.*?)(?P=mark)\]""")


def _of_map(name: str, words: str, place: int) -> Operation:
    def typing(kinds: Sequence[Kind]) -> Worded | None:
        (kind,) = kinds
        if kind is None:
            return None
        if kind.bare.name != "Map":
            raise InputError(field=name, value=str(kind), rule="it needs maps", hint="")
        return Worded(words, Type("Array", (kind.bare.parts[place],)))

    return Operation(words, times=slice(1) if place else slice(0), typed=typing, timed=typing)


def json(path: str, kind: Any = None) -> Operation:
    """Return the value at a path such as `$.a.b[0]` of JSON texts: str, int, float, bool, or a list of one of them.

    Without a type it is the JSON of the value. Where there is no value, or null, the result is None, or an empty list
    if a list was asked for. A value of another type, and a text that is not JSON, raise an error.
    """
    steps = _steps(path)
    inner = get_args(kind)[0] if get_origin(kind) is list and get_args(kind) else None
    if (inner or kind) not in _SCALARS:
        rule = f"it must be one of {', '.join(each.__name__ for each in _SCALARS if each)}, or a list of one"
        raise InputError(field="json", value=shown(repr(kind)), rule=rule, hint="")
    told = quoting.text("json: a value is not JSON")
    if inner is None:
        value, answer = _scalar("t", steps, kind, path), maybe(_SCALARS[kind])
    else:
        value, answer = _list("t", steps, inner, path), Type("Array", (maybe(_SCALARS[inner]) or TEXT,))
    words = f"arrayMap(t -> if(throwIf(NOT isValidJSON(t), {told}) = 0, {value}, {value}), [{{0}}])[1]"

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        (found,) = kinds
        if found is not None and not is_text(found):
            hint = "For maps and records, use get(name)."
            raise InputError(field="json", value=str(found), rule="it needs texts", hint=hint)
        if found is not None and not found.is_nullable:
            return Worded(words, answer)
        safe = words.replace("{0}", "ifNull({0}, 'null')")
        return Worded(safe, answer)

    return Operation(words, truth=kind is bool, typed=typing)


_SCALARS: dict[Any, Type] = {str: TEXT, int: LONG, float: FLOAT, bool: BOOL, None: TEXT}


def _steps(path: object) -> list[str | int]:
    if not isinstance(path, str):
        raise InputError(
            field="json", value=shown(repr(path)), rule="a path must be a text such as '$.a.b[0]'", hint=""
        )
    rest, steps = path.removeprefix("$"), []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            rule = f"it cannot be read at {shown(rest[at : at + 20])!r}"
            hint = "Write it as '$.a.b[0]', or with names in quotes: '$[\"a b\"]'."
            raise InputError(field="json", value=shown(repr(path)), rule=rule, hint=hint)
        place, name = found["place"], found["name"] or found["quoted"]
        steps.append(int(place) if place is not None else name)
        at = found.end()
    return steps


def _at(text: str, steps: Sequence[str | int]) -> str:
    """Return a text and a path as arguments of ClickHouse's JSON functions, whose indices count from 1."""
    listed = [braced(step) if isinstance(step, str) else str(step + 1 if step >= 0 else step) for step in steps]
    return ", ".join([text, *listed])


def _kind_at(text: str, steps: Sequence[str | int]) -> str:
    """Return SQL for ClickHouse's name of the JSON type at a path.

    It is 'Null' where an index is applied to an object, or a name to an array: ClickHouse would index the object's
    fields.
    """
    checks = [
        f"JSONType({_at(text, steps[:number])}) {'=' if isinstance(step, int) else '!='} 'Array'"
        for number, step in enumerate(steps)
    ]
    found = f"toString(JSONType({_at(text, steps)}))"
    return f"if({' AND '.join(checks)}, {found}, 'Null')" if checks else found


def _scalar(text: str, steps: Sequence[str | int], kind: Any, path: str) -> str:
    at, found = _at(text, steps), _kind_at(text, steps)
    told = braced(
        f"json: the value at {shown(path)} is not of type {getattr(kind, '__name__', 'JSON')}, or beyond its range"
    )
    wanted, value = {
        str: ("'String'", f"JSONExtractString({at})"),
        int: ("'Int64', 'UInt64'", f"toInt64OrNull(JSONExtractRaw({at}))"),
        float: ("'Double', 'Int64', 'UInt64'", f"JSONExtractFloat({at})"),
        bool: ("'Bool'", f"toBool(JSONExtractBool({at}))"),
        None: ("", f"JSONExtractRaw({at})"),
    }[kind]
    if kind is None:
        return f"if({found} = 'Null', NULL, {value})"
    is_wrong = (
        f"k NOT IN ('Null', {wanted}){f' OR (k != {chr(39)}Null{chr(39)} AND isNull({value}))' if kind is int else ''}"
    )
    return f"arrayMap(k -> if(throwIf({is_wrong}, {told}) = 0 AND k != 'Null', {value}, NULL), [{found}])[1]"


def _list(text: str, steps: Sequence[str | int], kind: Any, path: str) -> str:
    found, told = _kind_at(text, steps), braced(f"json: the value at {shown(path)} is not a list")
    elements = f"arrayMap(e -> {_scalar('e', (), kind, path)}, JSONExtractArrayRaw({_at(text, steps)}))"
    return f"if(throwIf({found} NOT IN ('Null', 'Array'), {told}) = 0, {elements}, {elements})"


_MAP = '{"m": [{"x": 1}]}'
_TEXT = """['{"a": {"b": [1, 2]}}', "{}"]"""

RECORDS = {
    "has_key": condition("mapContains({0}, {1})", 2).telling(
        "whether a map has this key", _MAP, 'col("m").has_key("y")', "[False]"
    ),
    "keys": _of_map("keys", "mapKeys({0})", 0).telling("the keys of a map", _MAP, 'col("m").keys()', '[["x"]]'),
    "values": _of_map("values", "mapValues({0})", 1).telling("the values of a map", _MAP, 'col("m").values()', "[[1]]"),
    "json": made(
        json,
        "the value at a path of a text in JSON, as `str`, `int`, `float`, `bool` or a `list` of one; without a type, "
        "its text. None, or an empty list, if there is none; a value of another type, or a text that is not JSON, "
        "is refused",
        _TEXT,
        'json("$.a.b[0]", int)',
        "[1, None]",
    ),
}
