"""Conversion of Python values to Arrow columns of a given ClickHouse type: exact or refused.

ClickHouse itself would wrap 300 in an Int8, turn null into 0 and truncate fractions of a second without an error. Whole
columns are converted at once; single rows are examined only to name the one that does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timezone
from decimal import Context, Decimal, Inexact, InvalidOperation
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from types import NoneType
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from aaiclick.data.clocks import LEFT_OUT, is_left_out
from aaiclick.data.typing.grammar import INTEGERS, PRECISION_MAX, Type
from aaiclick.data.typing.inference import Column, Unfit, first, outer, plain, unfold
from aaiclick.data.typing.time_ranges import fit_days, fit_moments, other_clock
from aaiclick.data.typing.types import arrow_of

if TYPE_CHECKING:
    import pyarrow as pa

Kinds = set[type]

NO_NULL = "None in a column that is not Nullable"

_EXACT = Context(prec=100, traps=[Inexact, InvalidOperation])


def build(column: Column, kind: Type) -> pa.Array:
    """Return the column with the Arrow type that is sent for `kind`; raise Unfit for a value that does not fit."""
    column, kinds = plain(column)
    if NoneType in kinds and not kind.is_nullable:
        raise first(column, lambda value: value is None, NO_NULL, "Make the type Nullable(…).")
    kinds.discard(NoneType)
    accepted, builder = _BUILDERS[kind.bare.name]
    if not kinds <= accepted:
        rule = f"a {{}} is no {kind.bare}"
        unfit = first(column, lambda value: value is not None and type(value) not in accepted, rule)
        unfit.rule = rule.format(type(unfit.value).__name__)
        raise unfit
    return builder(column, kind.bare, kinds)


def _filled(column: Column, convert: Callable[[Any], Any], rule: str) -> Column:
    """Convert every value except None; raise Unfit with `rule` for one that cannot be converted."""
    result: Column = []
    for row, value in enumerate(column):
        try:
            result.append(None if value is None else convert(value))
        except (ValueError, OverflowError, KeyError, ArithmeticError, AddressValueError):
            raise Unfit(row, value, rule) from None
    return result


# ---------------------------------------------------------------- numbers


def _bools(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    return pa.array(column, pa.bool_())


def _integers(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    if kinds - {int}:
        column = _filled(column, _whole, f"it is not a whole number, as {kind} needs")
    signed = not kind.name.startswith("U")
    low, high = (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1)) if signed else (0, 2**kind.bits)
    try:
        if kind.bits > 64:
            column = [None if n is None else n.to_bytes(kind.bits // 8, "little", signed=signed) for n in column]
        return pa.array(column, arrow_of(kind))
    except (OverflowError, pa.ArrowInvalid):
        rule = f"{kind} holds {low} to {high - 1}"
        raise first(column, lambda n: n is not None and not low <= n < high, rule) from None


def _whole(value: float | Decimal) -> int:
    if isinstance(value, Decimal) and value.adjusted() > 2 * PRECISION_MAX:  # as an int it could fill the memory
        raise ValueError
    number = int(value)
    if number != value:
        raise ValueError
    return number


def _floats(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    if kinds - {float}:
        column = _filled(column, _exact_float, "a Float64 does not hold it exactly")
    array = pa.array(column, pa.float64())
    return array if kind.name == "Float64" else narrowed(array, pa.float32())


def _exact_float(value: float | Decimal) -> float:
    number = float(value)
    if number != value and not math.isnan(number):
        raise ValueError
    return number


def narrowed(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return floats rounded to 32 bits; raise Unfit for a finite one that would become infinite."""
    import pyarrow.compute as pc  # here, to keep start-up light

    narrow = array.cast(target, safe=False)
    lost = pc.index(pc.and_(pc.is_inf(narrow), pc.is_finite(array)), True).as_py()
    if lost >= 0:
        raise Unfit(lost, array[lost].as_py(), "it is too large for a Float32")
    return narrow


def _decimals(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    if int in kinds:
        column = [None if n is None else Decimal(n) for n in column]
    if _is_tame(column, 38 if kind.numbers[0] <= 38 else PRECISION_MAX):
        with suppress(pa.ArrowInvalid):  # then row by row, to name the one that does not fit
            return pa.array(column, arrow_of(kind))
    precision, scale = kind.numbers
    rule = f"{kind} has {precision - scale} digits before and {scale} after the point"
    for row, value in enumerate(column):
        if value is not None and not _fits(value, precision, scale):
            raise Unfit(row, value, rule)
    unit = Decimal(1).scaleb(-scale)
    return pa.array([n if n is None else n.quantize(unit, context=_EXACT) for n in column], arrow_of(kind))


def _is_tame(column: Column, digits_max: int) -> bool:
    """Return whether pyarrow converts all of them exactly; of smaller exponents it sometimes makes 0.00."""
    try:
        return min((n.as_tuple()[2] for n in column if n is not None), default=0) >= -digits_max
    except TypeError:  # the exponent of NaN and infinity is a letter
        return False


def _fits(value: Decimal, precision: int, scale: int) -> bool:
    if not value.is_finite():
        return False
    _, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    zeros = len(text) - len(text.rstrip("0"))
    return not value or (value.adjusted() < precision - scale and -int(exponent) - zeros <= scale)


# ---------------------------------------------------------------- texts and bytes


def _texts(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    if bytes in kinds and any(map(_is_no_text, column)):
        hint = 'Encode it, for example by base64; bytes of one length are kept by a type such as "FixedString(16)".'
        raise first(column, _is_no_text, "its bytes are not a text in UTF-8, and would come back changed", hint)
    try:
        return pa.array(column, pa.binary() if bytes in kinds else pa.string())
    except UnicodeEncodeError:
        raise first(column, _has_half_a_pair, "it has a lone surrogate") from None


def _is_no_text(value: object) -> bool:
    if not isinstance(value, bytes):
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False


def _has_half_a_pair(value: object) -> bool:
    return isinstance(value, str) and any(0xD800 <= ord(sign) <= 0xDFFF for sign in value)


def _fixed(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    length = kind.numbers[0]
    rule = f"it takes more than {length} bytes, or is not a text"

    def padded(value: str | bytes) -> bytes:
        data = value.encode() if isinstance(value, str) else value
        if len(data) > length:
            raise ValueError
        return data.ljust(length, b"\0")

    return pa.array(_filled(column, padded, rule), pa.binary(length))


def _uuids(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    if str in kinds:
        column = _filled(column, lambda value: UUID(str(value)), "it is not a UUID")
    return pa.array([None if value is None else str(value) for value in column], pa.string())


def _addresses(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    if kind.name == "IPv4":
        return pa.array(
            _filled(column, lambda value: int(IPv4Address(value)), "it is not an IPv4 address"), pa.uint32()
        )
    return pa.array(_filled(column, _packed, "it is not an IPv6 address"), pa.binary(16))


def _packed(value: str | IPv6Address) -> bytes:
    address = IPv6Address(value)
    if address.scope_id:
        raise ValueError
    return address.packed


def _enums(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    numbers: dict[Any, int] = dict(kind.members)
    numbers |= {number: number for _, number in kind.members}
    return pa.array(_filled(column, numbers.__getitem__, f"it is not a member of {kind}"), arrow_of(kind))


# ---------------------------------------------------------------- dates and times


def _days(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    return fit_days(pa.array(column, pa.date32()), kind)


def _moments(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    zones = {value.tzinfo for value in column if value is not None}
    if (None in zones) if kind.zone else zones - {None}:
        for row, value in enumerate(column):
            if value is not None and (value.tzinfo is None) == bool(kind.zone):
                raise other_clock(row, value, kind)
    if not kind.zone:
        return fit_moments(pa.array(column, pa.timestamp("us")), kind)
    if not all(type(zone) is timezone for zone in zones):
        _refuse_left_out(column)
    if not all(type(zone) is ZoneInfo or _in_whole_seconds(zone) for zone in zones):
        column = _filled(column, _in_utc, "its zone gives no offset from UTC")
    return fit_moments(pa.array(column, pa.timestamp("us", "UTC")), kind)


def _refuse_left_out(column: Column) -> None:
    for row, value in enumerate(column):
        if value is not None and is_left_out(value):
            raise Unfit(row, value, LEFT_OUT, "Give a time that the clocks show.")


def _in_whole_seconds(zone: Any) -> bool:
    """Return whether Arrow handles a zone exactly: it ignores fractions of a second in the offset from UTC."""
    return type(zone) is timezone and not zone.utcoffset(None).microseconds


def _in_utc(value: datetime) -> datetime:
    if value.utcoffset() is None:
        raise ValueError
    return value.astimezone(UTC)


# ---------------------------------------------------------------- nested


def _lists(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    offsets, flat = unfold(column)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _inner(flat, kind.parts[0], offsets))


def _maps(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    pairs = [list(value.items()) if isinstance(value, dict) else value for value in column]
    offsets, flat = unfold(pairs)
    for row, pair in enumerate(flat):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise outer(Unfit(row, pair, f"{kind} is made of pairs", "Give a dict."), offsets)
    keys = _inner([pair[0] for pair in flat], kind.parts[0], offsets)
    values = _inner([pair[1] for pair in flat], kind.parts[1], offsets)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values)


def _tuples(column: Column, kind: Type, kinds: Kinds) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    labels = kind.labels or tuple(str(number) for number in range(1, len(kind.parts) + 1))
    if dict in kinds:
        rule = f"its keys are not those of {kind}, of which only Nullable ones may be missing"
        column = _filled(column, lambda value: _in_order(value, labels, kind.parts), rule)
    if wrong := [row for row, value in enumerate(column) if value is not None and len(value) != len(labels)]:
        raise Unfit(wrong[0], column[wrong[0]], f"{kind} has {len(labels)} parts")
    some = next((value for value in column if value is not None), None)
    if some is None:
        return pa.nulls(len(column), arrow_of(kind))
    rows, there = list(range(len(column) + 1)), [some if value is None else value for value in column]
    parts = [_inner([value[at] for value in there], part, rows) for at, part in enumerate(kind.parts)]
    return pa.StructArray.from_arrays(parts, list(labels), mask=pa.array([value is None for value in column]))


def _in_order(value: Any, labels: tuple[str, ...], parts: tuple[Type, ...]) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() - set(labels):
        raise KeyError
    found = [value.get(label) for label in labels]
    if any(label not in value and not part.is_nullable for label, part in zip(labels, parts, strict=True)):
        raise KeyError
    return found


def _inner(flat: Column, kind: Type, offsets: list[int]) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    try:
        built = build(flat, kind)
    except Unfit as unfit:
        raise outer(unfit, offsets) from None
    if isinstance(built, pa.ChunkedArray):
        raise Unfit(0, None, "it contains more than 2 GB of texts", "Insert the rows in parts.")
    return built


_Builder = Callable[[Column, Type, Kinds], Any]
_NUMBERS: Kinds = {int, float, bool, Decimal}
_BUILDERS: dict[str, tuple[Kinds, _Builder]] = {
    "Bool": ({bool}, _bools),
    **dict.fromkeys(INTEGERS, (_NUMBERS, _integers)),
    **dict.fromkeys(("Float32", "Float64"), ({int, float, Decimal}, _floats)),
    "Decimal": ({int, Decimal}, _decimals),
    "String": ({str, bytes}, _texts),
    "FixedString": ({str, bytes}, _fixed),
    "UUID": ({UUID, str}, _uuids),
    "IPv4": ({IPv4Address, str}, _addresses),
    "IPv6": ({IPv6Address, str}, _addresses),
    **dict.fromkeys(("Enum8", "Enum16"), ({str, int}, _enums)),
    **dict.fromkeys(("Date", "Date32"), ({date}, _days)),
    **dict.fromkeys(("DateTime", "DateTime64"), ({datetime}, _moments)),
    "Array": ({list, tuple}, _lists),
    "Map": ({dict, list}, _maps),
    "Tuple": ({tuple, list, dict}, _tuples),
}
