"""Built-in and standard library types that JSON lacks: LOWER encodes a value as JSON with a mark, BUILD restores it."""

from __future__ import annotations

import base64
import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import TYPE_CHECKING, Any
from uuid import UUID

from aaiclick.orchestration.rules.secrets import Secret
from aaiclick.orchestration.rules.validation import is_storable
from aaiclick.orchestration.rules.values.arrays import build_array, build_scalar
from aaiclick.orchestration.rules.values.class_names import Unreadable
from aaiclick.orchestration.rules.values.fields import (
    build_dataclass,
    build_enum,
    build_flag,
    build_model,
    build_named_tuple,
    build_struct,
)
from aaiclick.orchestration.rules.values.moments import UnknownZone, read_datetime, read_time, write_moment
from aaiclick.orchestration.rules.values.registry import find_registered

if TYPE_CHECKING:
    from aaiclick.orchestration.rules.values.walk import Walk

# Python limits the length of decimal texts that it reads or writes; the limit can be set as low as 640 digits.
_INT_MAX = 2**2048

_NAN = struct.pack(">d", math.nan)
_SIMPLE = {type(None), bool, int, float, str}
_TEXT = {str}
_FEW = 12  # up to this many, checking the values one by one is faster


class Sealed:
    """A decoded value whose class is not loaded in this process: its stored form, encoded again unchanged."""

    __slots__ = ("kind", "lowered", "payload")

    def __init__(self, kind: str, payload: list[object], lowered: object) -> None:
        self.kind, self.payload, self.lowered = kind, payload, lowered

    def __repr__(self) -> str:
        return f"<{self.payload[0]}: {self.lowered!r}>"


def is_plain(value: object) -> bool:
    """Return whether JSON represents the value without a mark."""
    kind = type(value)
    if kind is str:
        return is_storable(value)  # type: ignore[arg-type]
    if kind is int:
        return -_INT_MAX < value < _INT_MAX  # type: ignore[operator]
    return kind is bool or value is None or (kind is float and math.isfinite(value))  # type: ignore[arg-type]


def is_simple(values: list[Any]) -> bool:
    """Return whether JSON represents all of these without a mark; a fast check of long lists, False for short ones."""
    if len(values) <= _FEW:
        return False
    kinds = set(map(type, values))
    if kinds == {int}:
        return bool(min(values) > -_INT_MAX and max(values) < _INT_MAX)
    if kinds == {float}:
        return all(map(math.isfinite, values))
    return kinds <= _SIMPLE and all(map(is_plain, values))


# ---------------------------------------------------------------- to JSON


def _lower_marked(walk: Walk, kind: str, text: str, *payload: object) -> str:
    walk.spend(len(text))
    walk.note(kind, *payload)
    return text


def _base64(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode()


def _lower_text(walk: Walk, value: str) -> str:
    """Lower text with NUL or lone surrogates, which not every database can store."""
    return _lower_marked(walk, "str", _base64(value.encode("utf-8", "surrogatepass")))


def _lower_float(walk: Walk, value: float) -> str:
    """Lower an infinity, or a NaN with its exact bits."""
    bits = struct.pack(">d", value)
    return _lower_marked(walk, "float", repr(value) if value == value or bits == _NAN else bits.hex())


def _lower_sequence(walk: Walk, value: Any) -> list[object]:
    lowered = walk.items(list(value))
    if type(value) is tuple:
        walk.note("tuple")
    return lowered


def _lower_deque(walk: Walk, value: deque[object]) -> list[object]:
    walk.closed += 1
    lowered = walk.items(list(value))
    walk.closed -= 1
    walk.note("deque", value.maxlen)
    return lowered


def _lower_set(walk: Walk, value: Any) -> list[object]:
    walk.hashed += 1
    lowered = walk.items(ordered(value))
    walk.hashed -= 1
    walk.note(type(value).__name__)
    return lowered


def ordered(values: Any) -> list[object]:
    """Return the set as a list, sorted if its types allow: equal sets then give the same text in every process."""
    kinds = set(map(type, values))
    return sorted(values) if len(kinds) == 1 and kinds <= {int, str, bytes, float, date} else list(values)


def has_text_keys(value: dict[Any, Any]) -> bool:
    """Return whether JSON can represent all keys."""
    return set(map(type, value)) <= _TEXT and is_storable("".join(value))


def _lower_dict(walk: Walk, value: dict[Any, object]) -> object:
    if not has_text_keys(value):
        lowered = walk.pairs(value)
        walk.note("pairs")
        return lowered
    walk.enter(len(value), "")
    path, items = walk.path, {}
    for key, item in value.items():
        walk.spend(len(key))
        path[-1] = key
        items[key] = walk.lower(item)
    walk.leave()
    return items


def _lower_special_dict(walk: Walk, value: dict[Any, object]) -> object:
    payload: list[object] = []
    if type(value) is defaultdict:
        factory = value.default_factory
        name = None if factory is None else getattr(factory, "__name__", "")
        if factory is not None and _FACTORIES.get(str(name)) is not factory:
            allowed = ", ".join(_FACTORIES)
            walk.refuse(value, "the function for its defaults would be lost", f"Use one of {allowed}, or a plain dict.")
        payload = [name]
    walk.closed += 1
    lowered = walk.pairs(value)
    walk.closed -= 1
    walk.note(type(value).__name__, *payload)
    return lowered


def _lower_moment(walk: Walk, value: Any) -> str:
    try:
        text, facts = write_moment(value)
    except UnknownZone as error:
        walk.refuse(value, str(error), "Use zoneinfo.ZoneInfo or datetime.timezone.")
    return _lower_marked(walk, type(value).__name__, text, *([facts] if facts else []))


def _lower_timedelta(walk: Walk, value: timedelta) -> list[int]:
    walk.note("timedelta")
    return [value.days, value.seconds, value.microseconds]


def _lower_whole(walk: Walk, kind: str, *numbers: int) -> list[str]:
    lowered = [hex(number) for number in numbers]
    walk.spend(sum(map(len, lowered)))
    walk.note(kind)
    return lowered


def _lower_path(walk: Walk, value: PurePath) -> object:
    lowered = walk.lower(str(value))
    walk.note("path", type(value).__name__)
    return lowered


def _lower_secret(walk: Walk, value: Secret) -> str:
    if walk.closed:
        hint = "Pass it as an argument of its own, or in a list, a dict, a tuple or a set."
        walk.refuse(value, "a Secret inside it would not be found", hint)
    return _lower_marked(walk, "secret", value.source)


LOWER: dict[type, Callable[[Walk, Any], object]] = {
    str: _lower_text,  # only values for which is_plain is False
    float: _lower_float,
    int: lambda walk, value: _lower_marked(walk, "int", hex(value)),
    list: _lower_sequence,
    tuple: _lower_sequence,
    dict: _lower_dict,
    set: _lower_set,
    frozenset: _lower_set,
    bytes: lambda walk, value: _lower_marked(walk, "bytes", _base64(value)),
    bytearray: lambda walk, value: _lower_marked(walk, "bytearray", _base64(value)),
    date: lambda walk, value: _lower_marked(walk, "date", value.isoformat()),
    UUID: lambda walk, value: _lower_marked(walk, "uuid", str(value)),
    datetime: _lower_moment,
    time: _lower_moment,
    timedelta: _lower_timedelta,
    Decimal: lambda walk, value: _lower_marked(walk, "decimal", str(value)),
    Fraction: lambda walk, value: _lower_whole(walk, "fraction", value.numerator, value.denominator),
    complex: lambda walk, value: _lower_marked(walk, "complex", struct.pack(">dd", value.real, value.imag).hex()),
    range: lambda walk, value: _lower_whole(walk, "range", value.start, value.stop, value.step),
    deque: _lower_deque,
    Counter: _lower_special_dict,
    OrderedDict: _lower_special_dict,
    defaultdict: _lower_special_dict,
    **dict.fromkeys((PosixPath, WindowsPath, PurePosixPath, PureWindowsPath), _lower_path),
    Secret: _lower_secret,
    Sealed: lambda walk, value: walk.sealed(value),
}


# ---------------------------------------------------------------- from JSON

_FACTORIES: dict[str, type] = {
    kind.__name__: kind
    for kind in (int, float, str, bool, bytes, complex, list, tuple, dict, set, frozenset, Counter, OrderedDict, deque)
}
_PATHS = {kind.__name__: kind for kind in (PosixPath, WindowsPath, PurePosixPath, PureWindowsPath)}


def _build_float(text: str) -> float:
    return float(text) if text in ("nan", "inf", "-inf") else float(struct.unpack(">d", bytes.fromhex(text))[0])


def _build_complex(text: str) -> complex:
    return complex(*struct.unpack(">dd", bytes.fromhex(text)))


def _build_fraction(parts: list[str]) -> Fraction:
    return Fraction(*(int(part, 16) for part in parts))


def _build_path(text: str, kind: str) -> PurePath:
    if kind not in _PATHS:
        raise Unreadable(f"{kind} is not a kind of path")
    try:
        return _PATHS[kind](text)
    except NotImplementedError as error:
        raise Unreadable(f"a {kind} cannot be made on this system", "Pass a PurePath, or a text.") from error


def _build_defaultdict(pairs: Any, factory: str | None) -> defaultdict[Any, Any]:
    return defaultdict(None if factory is None else _FACTORIES[factory], pairs)


def _build_registered(lowered: object, name: str, home: str | None = None) -> object:
    found = find_registered(name, home)
    try:
        return found.decode(lowered)
    except Exception as error:  # decode is the user's code
        rule = f"the decode of {name} raised {type(error).__name__}: {error}"
        raise Unreadable(rule, "Correct the functions given to register_type.") from error


BUILD: dict[str, Callable[..., object]] = {
    "str": lambda text: base64.b64decode(text, validate=True).decode("utf-8", "surrogatepass"),
    "float": _build_float,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "pairs": dict,
    "deque": deque,
    "Counter": lambda pairs: Counter(dict(pairs)),
    "OrderedDict": OrderedDict,
    "defaultdict": _build_defaultdict,
    "int": lambda text: int(text, 16),
    "bytes": base64.b64decode,
    "bytearray": lambda text: bytearray(base64.b64decode(text)),
    "complex": _build_complex,
    "fraction": _build_fraction,
    "range": lambda parts: range(*(int(part, 16) for part in parts)),
    "decimal": Decimal,
    "uuid": UUID,
    "path": _build_path,
    "date": date.fromisoformat,
    "datetime": read_datetime,
    "time": read_time,
    "timedelta": lambda parts: timedelta(*parts),
    "secret": Secret,
    "enum": build_enum,
    "flag": build_flag,
    "dataclass": build_dataclass,
    "namedtuple": build_named_tuple,
    "struct": build_struct,
    "model": build_model,
    "array": build_array,
    "scalar": build_scalar,
    "type": _build_registered,
}

OF_CLASSES = frozenset({"enum", "flag", "dataclass", "namedtuple", "struct", "model", "type"})
"""Marks that name a class, whose module may have to be imported."""
