"""Inference of the ClickHouse type of a column of Python values: nothing is guessed, rounded or dropped."""

from __future__ import annotations

import array as arrays
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from itertools import accumulate, chain
from types import NoneType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from aaiclick.data.clocks import GIVE_ALIKE
from aaiclick.data.sql.quoting import is_column
from aaiclick.data.typing.grammar import PRECISION_MAX, Type, is_zone, nullable
from aaiclick.errors import InputError

Column = list[Any]

DEPTH_MAX = 10
FLAT_UNCHECKED_MAX = 10_000_000
"""With more inner values than this, a list is checked for containing itself before it is flattened."""

PLAIN = {NoneType, bool, int, float, str, bytes, date, datetime, Decimal, UUID, IPv4Address, IPv6Address}
PLAIN |= {list, tuple, dict}
_ALONE = {bool: "Bool", float: "Float64", str: "String", bytes: "String", date: "Date32", UUID: "UUID"}
_ALONE |= {IPv4Address: "IPv4", IPv6Address: "IPv6"}
_SEQUENCES = (list, tuple, range, deque, arrays.array)

GIVE_FIELDS = 'Give it: fields={"column": "Nullable(Int64)"}.'


class Unfit(Exception):
    """A value that its column cannot hold, with its row; the caller adds the name of the column."""

    def __init__(self, row: int, value: Any, rule: str, hint: str = "") -> None:
        super().__init__(rule)
        self.row, self.value, self.rule, self.hint = row, value, rule, hint


def first(column: Column, is_bad: Callable[[Any], bool], rule: str, hint: str = "") -> Unfit:
    """Return the Unfit for the first value for which `is_bad` is true."""
    for row, value in enumerate(column):
        if is_bad(value):
            return Unfit(row, value, rule, hint)
    return Unfit(0, column[:1], rule, hint)


# ---------------------------------------------------------------- plain values


def plain(column: Column) -> tuple[Column, set[type]]:
    """Return the column with all values converted to plain Python types, and the set of these types."""
    kinds = set(map(type, column))
    while strange := kinds - PLAIN:
        for kind in strange:
            convert = _converter(kind)
            if convert is None:
                hint = "Convert it first, for example to a text, a number or a list."
                raise first(column, lambda value, k=kind: type(value) is k, f"a {kind.__name__} cannot be stored", hint)  # type: ignore[misc]
            column = _converted(column, kind, convert)
        kinds = set(map(type, column))
    return column, kinds


def _converted(column: Column, kind: type, convert: Callable[[Any], Any]) -> Column:
    result = list(column)
    for row, value in enumerate(column):
        if type(value) is kind:
            try:
                result[row] = convert(value)
            except (ValueError, OverflowError) as error:
                raise Unfit(row, value, str(error), "Convert it first.") from None
            if type(result[row]) is kind:
                raise Unfit(row, value, f"a {kind.__name__} cannot be stored", "Convert it first.")
    return result


def _converter(kind: type) -> Callable[[Any], Any] | None:
    """Return a lossless conversion from a richer type towards a plain one; None if there is none."""
    module = kind.__module__.partition(".")[0]
    if issubclass(kind, Enum):
        return lambda value: value.value
    if module == "numpy":
        return _from_numpy
    if module == "pandas":
        return _from_pandas
    if module == "pyarrow" and hasattr(kind, "as_py"):
        return lambda value: value.as_py()
    for parent, convert in _PARENTS.items():
        if issubclass(kind, parent):
            return convert
    return None


def _from_numpy(value: Any) -> Any:
    import numpy as np  # here, to keep start-up light

    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype.kind not in "mM" else list(value)
    if isinstance(value, np.datetime64):
        return _from_datetime64(value)
    if isinstance(value, np.timedelta64):  # a subclass of np.integer
        return value
    if isinstance(value, np.floating):
        if float(value) != value and value == value:
            raise ValueError("it has more digits than a Float64")
        return float(value)
    return value.item() if isinstance(value, np.bool_ | np.integer | np.character) else value


def _from_datetime64(value: Any) -> Any:
    import numpy as np  # here, to keep start-up light

    if np.isnat(value):
        return None
    micros = value.astype("datetime64[us]")
    plain_value = micros.item()
    if micros.astype(value.dtype) != value or not isinstance(plain_value, datetime):
        raise ValueError("it does not fit into microseconds of the years 1 to 9999")
    return plain_value.date() if np.datetime_data(value.dtype)[0] == "D" else plain_value


def _from_pandas(value: Any) -> Any:
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, datetime):  # a Timestamp
        if getattr(value, "nanosecond", 0):
            raise ValueError("it has nanoseconds; only a whole column of them is kept exactly")
        return value.to_pydatetime()  # type: ignore[attr-defined]
    return value.tolist() if hasattr(value, "tolist") else value


_PARENTS: dict[type | tuple[type, ...], Callable[[Any], Any]] = {
    int: int,
    float: float,
    str: str.__str__,
    (bytes, bytearray, memoryview): bytes,
    datetime: lambda v: datetime.combine(date(v.year, v.month, v.day), v.timetz()),
    date: lambda v: date(v.year, v.month, v.day),
    Decimal: Decimal,
    UUID: lambda v: UUID(int=v.int),
    _SEQUENCES: list,
    Mapping: dict,
}


# ---------------------------------------------------------------- types


def kind_of(column: Column, depth: int = 0) -> Type:
    """Return the type that holds every value of a column exactly; raise Unfit if there is none."""
    column, kinds = plain(column)
    has_none = NoneType in kinds
    kinds.discard(NoneType)
    if not kinds:
        what = "a column of nothing but None" if has_none else "an empty column"
        raise Unfit(0, None if has_none else [], f"the type of {what} is not known", GIVE_FIELDS)
    kind = _united(column, kinds, depth)
    if not has_none:
        return kind
    if kind.name in ("Array", "Map"):
        hint = "Write an empty one instead." if kind.name == "Array" else "Write {} instead."
        raise first(column, lambda value: value is None, f"{kind.name} cannot be Nullable", hint)
    return nullable(kind)


def _united(column: Column, kinds: set[type], depth: int) -> Type:
    if len(kinds) == 1 and (name := _ALONE.get(next(iter(kinds)))):
        return Type(name)
    if kinds == {int}:
        return _integer_kind(column)
    if kinds == {int, float}:
        return Type("Float64")
    if kinds <= {int, Decimal}:
        return _decimal_kind(column)
    if kinds == {datetime}:
        return Type("DateTime64", numbers=(6,), zone=_zone_of(column))
    if kinds <= {list, tuple}:
        return Type("Array", (_inner_kind(column, depth),))
    if kinds == {dict}:
        return _dict_kind(column, depth)
    raise _mixed(column)


def _dict_kind(column: Column, depth: int) -> Type:
    """Return a Map type if one type holds all values and no dict is None; otherwise a record with a type per key."""
    try:
        kind = Type("Map", (Type("String"), _inner_kind(column, depth)))
    except Unfit as unfit:
        if not any(column) or any(type(key) is not str for value in column for key in value or ()):
            raise
        try:
            return _record_kind(column, depth)
        except RecursionError:
            raise unfit from None
    has_none = any(value is None for value in column)
    return _record_kind(column, depth) if has_none and any(column) else kind


def _record_kind(column: Column, depth: int) -> Type:
    """Return a Tuple type with a part for each key; Nullable where some of the dicts lack the key."""
    if depth >= DEPTH_MAX:
        raise Unfit(0, column[0], f"it is nested deeper than {DEPTH_MAX}, or contains itself")
    rows = [row for row, value in enumerate(column) if value is not None]
    parts: dict[str, Type] = {}
    for key in dict.fromkeys(key for row in rows for key in column[row]):
        if key == "null" or not is_column(key):
            raise Unfit(rows[0], column[rows[0]], f"the key {key!r} cannot be the name of a part", "Rename it.")
        try:
            parts[key] = kind_of([column[row].get(key) for row in rows], depth + 1)
        except Unfit as unfit:
            rule = f"in key {key!r}, {unfit.rule}"
            raise Unfit(rows[min(unfit.row, len(rows) - 1)], unfit.value, rule, unfit.hint) from None
    return Type("Tuple", tuple(parts.values()), tuple(parts))


def _mixed(column: Column) -> Unfit:
    expected = next(type(value) for value in column if value is not None)
    rule = f"the column began with {expected.__name__}, and the two cannot be combined"
    return first(column, lambda value: value is not None and type(value) is not expected, rule, "Convert one of them.")


def _integer_kind(column: Column) -> Type:
    numbers = [value for value in column if value is not None]
    low, high = min(numbers), max(numbers)
    for name, least, most in (("Int64", -(2**63), 2**63), ("UInt64", 0, 2**64), ("Int256", -(2**255), 2**255)):
        if least <= low and high < most:
            return Type(name)
    rule = "no integer type holds it together with the others"
    raise first(column, lambda value: value is not None and not -(2**255) <= value < 2**255, rule)


def _decimal_kind(column: Column) -> Type:
    numbers = [Decimal(value) if type(value) is int else value for value in column if value is not None]
    try:
        scale = max(0, -int(min(number.as_tuple()[2] for number in numbers)))
        whole = max(0, *map(Decimal.adjusted, numbers)) + 1
    except (TypeError, ValueError):  # the exponent of NaN and infinity is a letter
        rule = "NaN and infinity are not decimals"
        raise first(column, lambda value: not Decimal(value or 0).is_finite(), rule, "Use None, or floats.") from None
    if whole + scale <= PRECISION_MAX:
        return Type("Decimal", numbers=(whole + scale, scale))
    raise _too_long(column)


def _too_long(column: Column) -> Unfit:
    whole, scale = 1, 0
    rule = f"more than {PRECISION_MAX} digits are needed to hold the column up to here"
    for row, value in enumerate(column):
        number = Decimal(value or 0)
        whole, scale = max(whole, number.adjusted() + 1), max(scale, -int(number.as_tuple()[2]))
        if whole + scale > PRECISION_MAX:
            return Unfit(row, value, rule)
    return Unfit(0, column[0], rule)


def _zone_of(column: Column) -> str:
    """Return the zone of all rows: UTC if there are several or one without a name, an empty text if there is none."""
    found = {value.tzinfo for value in column if value is not None}
    if None in found and len(found) > 1:
        began = next(value for value in column if value is not None).tzinfo is None
        rule = f"the column began with a time {'without' if began else 'with'} a zone, and the two cannot be combined"
        raise first(column, lambda value: value is not None and (value.tzinfo is None) is not began, rule, GIVE_ALIKE)
    if None in found:
        return ""
    names = {zone_key(zone) for zone in found}
    name = names.pop() if len(names) == 1 else "UTC"
    return name if is_zone(name) else "UTC"


def zone_key(zone: tzinfo | None) -> str:
    """Return the name of a zone of `zoneinfo` or `pytz`; an empty text for other zones."""
    if zone is UTC:
        return "UTC"
    name = zone.key if type(zone) is ZoneInfo else getattr(zone, "zone", None)
    return name if isinstance(name, str) else ""


# ---------------------------------------------------------------- inner values


def _inner_kind(column: Column, depth: int) -> Type:
    if depth >= DEPTH_MAX:
        raise Unfit(0, column[0], f"it is nested deeper than {DEPTH_MAX}, or contains itself")
    rows = [[] if value is None else value for value in column]
    if isinstance(next(value for value in column if value is not None), dict):
        check_keys(rows)
        rows = [list(row.values()) if row else [] for row in rows]
    offsets, flat = unfold(rows)
    if not flat:
        raise Unfit(0, column[0], "the type of an empty list is unknown", 'Give it: fields={"column": "Array(Int64)"}.')
    try:
        return kind_of(flat, depth + 1)
    except Unfit as unfit:
        raise outer(unfit, offsets) from None


def check_keys(rows: Iterable[dict[Any, Any]]) -> None:
    for row, value in enumerate(rows):
        for key in value:
            if not isinstance(key, str):
                raise Unfit(row, value, f"the key {key!r} is not a text", 'Give the type: fields={"column": "Map(…)"}.')


def unfold(rows: Column) -> tuple[list[int], Column]:
    """Return the offset at which each row begins in the flattened column, and that column of all inner values."""
    offsets = list(accumulate(map(len, rows), initial=0))
    if offsets[-1] > FLAT_UNCHECKED_MAX:
        _check_not_within_itself(rows)
    return offsets, list(chain.from_iterable(rows))


def outer(unfit: Unfit, offsets: list[int]) -> Unfit:
    """Return the same Unfit with the row of the outer column, from the offsets of `unfold`."""
    return Unfit(max(bisect_right(offsets, unfit.row) - 1, 0), unfit.value, unfit.rule, unfit.hint)


def _check_not_within_itself(rows: Column) -> None:
    done: set[int] = set()
    for row, value in enumerate(rows):
        if _holds_itself(value, set(), done):
            raise Unfit(row, value, "it contains itself")


def _holds_itself(value: Any, above: set[int], done: set[int]) -> bool:
    if not isinstance(value, list | tuple | dict) or id(value) in done:
        return False
    if id(value) in above:
        return True
    if len(above) > DEPTH_MAX:
        raise InputError(field="value", value="…", rule=f"it is nested deeper than {DEPTH_MAX}", hint="")
    inner = value.values() if isinstance(value, dict) else value
    found = any(_holds_itself(one, above | {id(value)}, done) for one in inner)
    done.add(id(value))
    return found
