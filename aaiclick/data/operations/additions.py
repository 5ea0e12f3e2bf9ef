"""`+`, `-` and `*` where operands may be times, dates, texts or lists.

Times are moved by exact durations, and refused beyond the range of their type. A duration is a Decimal number of
seconds: so is the difference of two times, and a `timedelta`.
"""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data.arithmetic import checked as arithmetic
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import (
    NULL,
    TEXT,
    Kind,
    Typing,
    Worded,
    common,
    decimal,
    is_decimal,
    is_whole,
    like,
)
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import Whole, null_or
from aaiclick.errors import InputError

DATE = Type("Date32")
SPAN = Type("Decimal", numbers=(18, 6))
"""The type of a duration: seconds with six decimal places."""

_DAY_S = 86_400
_DAYS = (-25_567, 120_529)
"""1900-01-01 and 2299-12-31 as days since 1970-01-01: the range of Date32 and DateTime64."""

_BEYOND = quoting.text("a time is refused: it is out of the range of its type")
_PARTS = quoting.text("a day can only be moved by whole days. Make a time of it with cast('DateTime64(6)')")


def is_day(kind: Kind) -> bool:
    return kind is not None and kind.bare.name in ("Date", "Date32")


def is_time(kind: Kind) -> bool:
    return kind is not None and kind.bare.name in ("DateTime", "DateTime64")


def is_text(kind: Kind) -> bool:
    return kind is not None and kind.bare.name == "String"


def is_list(kind: Kind) -> bool:
    return kind is not None and kind.bare.name == "Array"


def digits_of(kind: Type) -> int:
    """Return the number of decimal places of the seconds of a time."""
    return kind.bare.numbers[0] if kind.bare.numbers else 0


def moved(sign: str, plain: Typing) -> Typing:
    """Return the typing of `+` or `-`; numbers are left to `plain`."""

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        left, right = kinds
        if sign == "+" and (is_text(left) or is_text(right)):
            return _joined(kinds)
        if sign == "+" and is_list(left) and is_list(right):
            return Worded("arrayConcat({0}, {1})", common(kinds))
        if is_time(left) or is_day(left) or is_time(right) or is_day(right):
            return _beside_moments(sign, kinds)
        return plain(kinds)

    return typing


def _joined(kinds: Sequence[Kind]) -> Worded | None:
    """Concatenate texts; raise InputError for a text and another type."""
    if all(is_text(kind) or kind == NULL for kind in kinds):
        return Worded("concat({0}, {1})", like(TEXT, *kinds))
    if None in kinds:
        return None
    hint = "Make both texts with cast(str), or use join_with(…), which takes any values."
    raise InputError(
        field="operands", value=" + ".join(map(str, kinds)), rule="a text and another value cannot be added", hint=hint
    )


def _beside_moments(sign: str, kinds: Sequence[Kind]) -> Worded | None:
    left, right = kinds
    if left is None or right is None:
        return None
    if is_time(left) and is_time(right):
        return _between(left, right) if sign == "-" else None
    if is_day(left) and is_day(right):
        days = "(toInt32(toDate32({0})) - toInt32(toDate32({1})))"
        return Worded(f"toDecimal64({days} * {_DAY_S}, 6)", like(SPAN, *kinds)) if sign == "-" else None
    if (is_time(left) or is_day(left)) and _is_amount(right):
        return _shifted(sign, kinds, 0)
    if sign == "+" and (is_time(right) or is_day(right)) and _is_amount(left):
        return _shifted(sign, kinds, 1)
    return None


def _is_amount(kind: Type) -> bool:
    if is_decimal(kind):
        return kind.bare.numbers[1] <= 9
    return is_whole(kind) and kind.bare.name != "Bool" and Whole(kind).bits <= 64


def _between(left: Type, right: Type) -> Worded:
    if max(digits_of(left), digits_of(right)) <= 6:
        return Worded("minus(toDateTime64({0}, 6), toDateTime64({1}, 6))", like(SPAN, left, right))
    words = null_or("toDecimal128(minus(toDateTime64({0}, 9), toDateTime64({1}, 9)), 9)", (left, right))
    return Worded(words, like(decimal(38, 9), left, right))


def _shifted(sign: str, kinds: Sequence[Kind], place: int) -> Worded:
    moment, amount = kinds[place], kinds[1 - place]
    assert moment is not None
    assert amount is not None
    scale = amount.bare.numbers[1] if is_decimal(amount) else 0
    by = f"{{{1 - place}}}"
    if is_day(moment):
        return Worded(null_or(_other_day(sign, f"{{{place}}}", by, amount, scale), kinds), like(DATE, *kinds))
    digits = max(digits_of(moment), scale)
    words = ticked(f"{{{place}}}", f"{sign} {_units(by, amount, 6 if digits <= 6 else 9)}", digits, moment.bare.zone)
    return Worded(null_or(words, kinds), like(Type("DateTime64", numbers=(digits,), zone=moment.bare.zone), *kinds))


def _units(by: str, amount: Type, digits: int) -> str:
    """Return seconds as an integer number of their 10**-`digits` parts."""
    if not is_decimal(amount):
        return f"toInt128({by}) * {10**digits}"
    return f"toInt128(toDecimal128({by}, {amount.bare.numbers[1]}) * {10**digits})"


def ticked(moment: str, added: str, digits: int, zone: str) -> str:
    """Return a time moved by microseconds, or by nanoseconds if its type has more than six digits."""
    unit, fine = ("Micro", 6) if digits <= 6 else ("Nano", 9)
    total = f"toInt128(toUnixTimestamp64{unit}(toDateTime64({moment}, {fine}))) {added}"
    return of_ticks(total, digits, zone)


def of_ticks(total: str, digits: int, zone: str) -> str:
    """Return the time `total` microseconds after 1970, or nanoseconds for more than six digits.

    A time beyond the range of its type raises an error.
    """
    unit, fine = ("Micro", 6) if digits <= 6 else ("Nano", 9)
    edge = 0 if zone in ("", "UTC") else 1  # a margin of a day, since local clocks may show another date
    first, last = (_DAYS[0] + edge) * _DAY_S * 10**fine, (_DAYS[1] + 1 - edge) * _DAY_S * 10**fine
    if fine == 9:
        first, last = max(first, -(2**63)), min(last, 2**63)
    checked = f"arrayMap(k -> toInt64(k) + throwIf(k < {first} OR k >= {last}, {_BEYOND}), [{total}])[1]"
    made = f"fromUnixTimestamp64{unit}({checked}{f', {quoting.text(zone)}' if zone else ''})"
    return made if digits == fine else f"toDateTime64({made}, {digits})"


def _other_day(sign: str, day: str, by: str, amount: Type, scale: int) -> str:
    """Return a date moved by a number of days, or by a duration of whole days."""
    days = f"toInt128({by})"
    if is_decimal(amount):
        parts = f"toInt128(toDecimal128({by}, {scale}) * {10**scale})"
        unit = _DAY_S * 10**scale
        days = f"arrayMap(p -> intDiv(p, {unit}) + throwIf(modulo(p, {unit}) != 0, {_PARTS}), [{parts}])[1]"
    return day_of(f"toInt128(toInt32(toDate32({day}))) {sign} {days}")


def day_of(number: str) -> str:
    """Return the date `number` days after 1970-01-01; an error beyond the range."""
    checked = f"arrayMap(k -> toInt32(k) + throwIf(k < {_DAYS[0]} OR k > {_DAYS[1]}, {_BEYOND}), [{number}])[1]"
    return f"addDays(toDate32('1970-01-01'), {checked})"


PLUS, MINUS = moved("+", arithmetic.added("+")), moved("-", arithmetic.added("-"))
WRAPPING_PLUS, WRAPPING_MINUS = moved("+", arithmetic.wrapped("+")), moved("-", arithmetic.wrapped("-"))


def multiplied(kinds: Sequence[Kind]) -> Worded | None:
    """Return the typing of `*`, which takes numbers only."""
    if any(map(is_text, kinds)) and None not in kinds:
        hint = "repeat(times) repeats a text; cast(int) makes a number of a text that shows one."
        raise InputError(
            field="operands", value=" * ".join(map(str, kinds)), rule="texts cannot be multiplied", hint=hint
        )
    return arithmetic.added("*")(kinds)


TIMES: Typing = multiplied
