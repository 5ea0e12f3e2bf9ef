"""Plain values travel exactly, or are refused with the place named.

A value is stored in an envelope: `{"object_type": "pyobj", "value": <JSON>, "marks": [[path, kind, payload?], …]}`.
A mark says how the JSON at its path becomes the value again, so that a user's data is never searched for markers: a
dict that looks like an envelope stays a dict. The text belongs into a text column: JSONB would turn 1e16 into an int.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn
from uuid import UUID

from aaiclick.errors import ValueNotPortable, ValueTooLarge
from aaiclick.orchestration.rules.moments import UnknownZone, read_datetime, read_time, write_moment
from aaiclick.orchestration.rules.names import is_storable, shorten, shown
from aaiclick.orchestration.rules.references import check_reference, is_reference
from aaiclick.orchestration.rules.refusals import why_not
from aaiclick.orchestration.rules.secrets import Secret

DEPTH_MAX = 100
NODE_BYTES = 64  # to name a task or a group
SIZE_SETTING = "AAICLICK_VALUE_BYTES_MAX"
_NO_NUMBER = "Pass None or a text instead."

# Python itself refuses to read or write longer decimal texts than its limit, which can be set as low as 640 digits.
_INT_MAX = 2**2048

Mark = Callable[[object], tuple[str, object] | None]
Resolve = Callable[[str, object], object]


class Reference(NamedTuple):
    """What stands for a task, group, object or view where a text is decoded without a resolver."""

    kind: str
    payload: object


# ---------------------------------------------------------------- encoding

_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def encode_value(value: object, *, path: str = "value", bytes_max: int, mark: Mark | None = None) -> str:
    """The JSON text of one value; `mark` is asked about what is not plain, and names it by (kind, payload)."""
    if value is None:
        return "null"
    envelope = _envelope(value, path, bytes_max, mark)
    return _within(_dump(envelope), path, bytes_max, [envelope])


def encode_kwargs(
    kwargs: Mapping[str, object], *, bytes_max: int, mark: Mark | None = None, references: bool = False
) -> str:
    """The JSON text of keyword arguments, each in its envelope; `references` lets dicts stand for Objects and Views."""
    envelopes: dict[str, object] = {}
    for name, value in kwargs.items():
        if type(name) is not str or not is_storable(name):
            raise ValueNotPortable(path="kwargs", value=shorten(name), rule="a name must be plain text", hint="")
        if references and is_reference(value):
            value = check_reference(value, f"kwargs.{name}")
            if value["object_type"] != "pyobj":
                envelopes[name] = value
                continue
            value = value["value"]
        if _is_plain(value):
            envelopes[name] = {"object_type": "pyobj", "value": value}
        else:
            envelopes[name] = _envelope(value, f"kwargs.{name}", bytes_max, mark)
    return _within(_dump(envelopes), "kwargs", bytes_max, envelopes.values())


def _within(text: str, path: str, bytes_max: int, envelopes: Iterable[object]) -> str:
    """The text, if it is not too large; tasks and groups that it names weigh nothing, however many they are."""
    size = len(text) if text.isascii() else len(text.encode())
    if size > bytes_max:
        size -= NODE_BYTES * sum(map(_nodes_in, envelopes))
    if size > bytes_max:
        raise ValueTooLarge(path=path, size=size, limit=bytes_max, setting=SIZE_SETTING)
    return text


def _nodes_in(envelope: object) -> int:
    marks = envelope.get("marks", ()) if isinstance(envelope, dict) else ()
    return sum(kind in ("task", "group") for _, kind, *_ in marks)


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind is str:
        return is_storable(value)  # type: ignore[arg-type]
    if kind is int:
        return -_INT_MAX < value < _INT_MAX  # type: ignore[operator]
    return kind is bool or value is None or (kind is float and math.isfinite(value))  # type: ignore[arg-type]


def _envelope(value: object, path: str, bytes_max: int, mark: Mark | None) -> dict[str, object]:
    walk = _Walk(value, path, bytes_max, mark)
    envelope: dict[str, object] = {"object_type": "pyobj", "value": walk.lower(value)}
    if walk.marks:
        place, kind, *payload = walk.marks[-1]
        if not place and kind in ("object", "view") and isinstance(payload[0], dict):
            return {"object_type": kind, **payload[0]}
        envelope["marks"] = walk.marks
    return envelope


def reference_in(value: object) -> tuple[str, dict[str, Any]] | None:
    """What an Object or a View is marked with; None for anything else."""
    refer = getattr(type(value), "__aaiclick_reference__", None)
    if refer is None:
        return None
    found: dict[str, Any] = dict(refer(value))
    return found.pop("object_type"), found


class _Walk:
    """One walk over a value, which makes plain JSON of it and marks what JSON cannot say.

    Marks come from the inside out, so that decoding can apply them in order. `room` is a lower bound of the bytes left:
    a small value that refers to its parts again and again cannot explode.
    """

    __slots__ = ("bytes_max", "depth", "hashed", "label", "mark", "marks", "path", "room", "root")

    def __init__(self, root: object, label: str, bytes_max: int, mark: Mark | None) -> None:
        self.root, self.label, self.mark = root, label, mark
        self.bytes_max = self.room = bytes_max
        self.path: list[str | int] = []
        self.marks: list[list[object]] = []
        self.depth = self.hashed = 0

    def lower(self, value: object) -> object:
        if _is_plain(value):
            if type(value) is str:
                self.spend(len(value))
            return value
        lower = _LOWER.get(type(value))
        return self.foreign(value) if lower is None else lower(self, value)

    def spend(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            size = self.bytes_max - self.room
            raise ValueTooLarge(path=self.label, size=f"at least {size}", limit=self.bytes_max, setting=SIZE_SETTING)

    def note(self, kind: str, *payload: object) -> None:
        self.marks.append([self.path.copy(), kind, *payload])

    def enter(self, size: int, *steps: str | int) -> None:
        self.spend(size)
        self.depth += 1
        if self.depth > DEPTH_MAX:
            self.refuse_depth()
        self.path.extend(steps)

    def leave(self, steps: int = 1) -> None:
        self.depth -= 1
        del self.path[-steps:]

    def items(self, values: list[object]) -> list[object]:
        path = self.path
        self.enter(len(values), 0)
        lowered = []
        for index, value in enumerate(values):
            path[-1] = index
            lowered.append(self.lower(value))
        self.leave()
        return lowered

    def foreign(self, value: object) -> object:
        answer = self.mark(value) if self.mark else None
        if answer is None:
            self.refuse(value, *why_not(type(value)))
        if self.hashed:
            self.refuse(value, "a reference cannot be in a set or be a key", "Put it into a list or a dict's values.")
        self.note(*answer)
        return None

    def refuse(self, value: object, rule: str, hint: str = "") -> NoReturn:
        path = _written(self.label, _steps(self.root, self.path))
        raise ValueNotPortable(path=path, value=shown(value, path), rule=rule, hint=hint)

    def refuse_depth(self) -> NoReturn:
        way, seen = list(_steps(self.root, self.path)), {id(self.root)}
        rule = f"it is nested more than {DEPTH_MAX} levels deep"
        for length, (_, node) in enumerate(way, 1):
            if id(node) in seen:
                way, rule = way[:length], "it contains itself"
                break
            seen.add(id(node))
        path = _written(self.label, way)
        raise ValueNotPortable(path=path, value=shown(way[-1][1], path), rule=rule, hint="Pass a flat value.")


def _steps(root: object, path: list[str | int]) -> Iterator[tuple[str, object]]:
    """The way to a place inside a value: each step as a person writes it, and what it leads to."""
    node: Any = root
    steps = iter(path)
    for step in steps:
        if type(node) is dict and not _has_text_keys(node):
            entry, side = list(node.items())[int(step)], int(next(steps))
            written, node = f"[{shorten(entry[0], 40)}]" if side else " (a key)", entry[side]
        elif type(node) in (set, frozenset):
            written, node = "{…}", _ordered(node)[int(step)]
        else:
            plain = type(step) is str and step.isidentifier()
            written, node = f".{step}" if plain else f"[{shorten(step, 40)}]", node[step]
        yield written, node


def _written(label: str, steps: Iterable[tuple[str, object]]) -> str:
    text = label + "".join(written for written, _ in steps)
    return text if len(text) <= 200 else f"{text[:120]}…{text[-60:]}"


# ---------------------------------------------------------------- the kinds: how each is lowered


def _lower_text(walk: _Walk, value: str) -> NoReturn:
    walk.refuse(value, "text with NUL or a lone surrogate cannot be stored", "Remove it, or pass bytes.")


def _lower_marked(walk: _Walk, kind: str, text: str, *payload: object) -> str:
    walk.spend(len(text))
    walk.note(kind, *payload)
    return text


def _lower_sequence(walk: _Walk, value: Any) -> list[object]:
    lowered = walk.items(list(value))
    if type(value) is tuple:
        walk.note("tuple")
    return lowered


def _lower_set(walk: _Walk, value: Any) -> list[object]:
    walk.hashed += 1
    lowered = walk.items(_ordered(value))
    walk.hashed -= 1
    walk.note(type(value).__name__)
    return lowered


def _ordered(values: Any) -> list[object]:
    """The set as a list, sorted where that is safe: the same set then gives the same text in every process."""
    kinds = set(map(type, values))
    return sorted(values) if len(kinds) == 1 and kinds <= {int, str, bytes, float, date} else list(values)


def _has_text_keys(value: dict[Any, Any]) -> bool:
    return all(type(key) is str for key in value)


def _lower_dict(walk: _Walk, value: dict[Any, object]) -> object:
    if not _has_text_keys(value):
        return _lower_pairs(walk, value)
    walk.enter(len(value), "")
    lowered: dict[str, object] = {}
    for key, item in value.items():
        if not is_storable(key):
            walk.path.pop()
            walk.refuse(key, "a key with NUL or a lone surrogate cannot be stored", "Remove it from the key.")
        walk.spend(len(key))
        walk.path[-1] = key
        lowered[key] = walk.lower(item)
    walk.leave()
    return lowered


def _lower_pairs(walk: _Walk, value: dict[Any, object]) -> list[list[object]]:
    walk.enter(len(value), 0, 0)
    lowered = []
    for index, (key, item) in enumerate(value.items()):
        walk.path[-2:] = index, 0
        walk.hashed += 1
        pair = [walk.lower(key)]
        walk.hashed -= 1
        walk.path[-1] = 1
        pair.append(walk.lower(item))
        lowered.append(pair)
    walk.leave(2)
    walk.note("pairs")
    return lowered


def _lower_moment(walk: _Walk, value: Any) -> str:
    try:
        text, facts = write_moment(value)
    except UnknownZone as error:
        walk.refuse(value, str(error), "Use zoneinfo.ZoneInfo or datetime.timezone.")
    return _lower_marked(walk, type(value).__name__, text, *([facts] if facts else []))


def _lower_decimal(walk: _Walk, value: Decimal) -> str:
    if not value.is_finite():
        walk.refuse(value, "NaN and infinity do not travel", _NO_NUMBER)
    return _lower_marked(walk, "decimal", str(value))


def _lower_timedelta(walk: _Walk, value: timedelta) -> list[int]:
    walk.note("timedelta")
    return [value.days, value.seconds, value.microseconds]


_LOWER: dict[type, Callable[[_Walk, Any], object]] = {
    str: _lower_text,  # what JSON can say by itself never comes here
    float: lambda walk, value: walk.refuse(value, "NaN and infinity are not values of JSON", _NO_NUMBER),
    int: lambda walk, value: _lower_marked(walk, "int", hex(value)),
    list: _lower_sequence,
    tuple: _lower_sequence,
    dict: _lower_dict,
    set: _lower_set,
    frozenset: _lower_set,
    bytes: lambda walk, value: _lower_marked(walk, "bytes", base64.b64encode(value).decode()),
    date: lambda walk, value: _lower_marked(walk, "date", value.isoformat()),
    UUID: lambda walk, value: _lower_marked(walk, "uuid", str(value)),
    datetime: _lower_moment,
    time: _lower_moment,
    timedelta: _lower_timedelta,
    Decimal: _lower_decimal,
    Secret: lambda walk, value: _lower_marked(walk, "secret", value.source),
}


# ---------------------------------------------------------------- decoding


def decode_value(text: str, resolve: Resolve | None = None) -> object:
    """The value of a text; `resolve` turns what was marked by the caller into what it stands for."""
    envelope = json.loads(text)
    return None if envelope is None else _open(envelope, resolve or Reference)


def decode_kwargs(text: str, resolve: Resolve | None = None) -> dict[str, object]:
    """The keyword arguments of a text."""
    return {name: _open(envelope, resolve or Reference) for name, envelope in json.loads(text).items()}


def _open(envelope: dict[str, Any], resolve: Resolve) -> object:
    kind = envelope.pop("object_type")
    if kind != "pyobj":
        return resolve(kind, envelope)
    holder: list[Any] = [envelope["value"]]
    for path, kind, *payload in envelope.get("marks", ()):
        place: Any = holder
        last: Any = 0
        for step in path:
            place, last = place[last], step
        build = BUILD.get(kind)
        try:
            place[last] = build(place[last], *payload) if build else resolve(kind, *payload)
        except UnknownZone as error:
            facts = {"path": str(path), "value": shorten(place[last]), "rule": str(error), "hint": "Install tzdata."}
            raise ValueNotPortable(**facts) from error
    return holder[0]


BUILD: dict[str, Callable[..., object]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "pairs": dict,
    "int": lambda text: int(text, 16),
    "bytes": base64.b64decode,
    "decimal": Decimal,
    "uuid": UUID,
    "date": date.fromisoformat,
    "datetime": read_datetime,
    "time": read_time,
    "timedelta": lambda parts: timedelta(*parts),
    "secret": Secret,
}
