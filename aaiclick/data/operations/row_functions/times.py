"""Functions of dates and times."""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data.operations.additions import DATE, of_ticks
from aaiclick.data.operations.operation import Operation, condition, gives, made
from aaiclick.data.operations.row_functions.calendar_steps import ended, stepped
from aaiclick.data.operations.row_functions.clock_texts import read
from aaiclick.data.operations.row_functions.time_verbs import begun, converted, localized, written, zone_of
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import Kind, Worded, is_decimal, is_float, is_whole, like
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import null_or
from aaiclick.errors import InputError
from aaiclick.urls import shown

_BYTE, _YEAR, _LONG = Type("UInt8"), Type("UInt16"), Type("Int64")

_LEAP = "((toYear({0}) % 4 = 0 AND toYear({0}) % 100 != 0) OR toYear({0}) % 400 = 0)"
_DAYS = f"toUInt8(multiIf(toMonth({{0}}) IN (4, 6, 9, 11), 30, toMonth({{0}}) = 2, 28 + {_LEAP}, 31))"
_MICROS = "toUnixTimestamp64Micro(toDateTime64({0}, 6))"
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_UNTIL = "(toInt64(toInt32(toDate32({1}))) - toInt64(toInt32(toDate32({0}))))"


def timestamp(unit: str = "s") -> Operation:
    """Return the seconds (or milliseconds `ms`, microseconds `us`) since 1970-01-01 in UTC, rounded down."""
    _check_unit("timestamp", unit)
    step = 1_000_000 // _PER_SECOND[unit]
    ticks = _MICROS if step == 1 else f"toInt64(floor({_MICROS} / {step}))"
    if step > 1:
        ticks = f"intDiv({_MICROS} - positiveModulo({_MICROS}, {step}), {step})"
    return gives(ticks, _LONG)


def from_timestamp(unit: str = "s", zone: str = "UTC") -> Operation:
    """Return the time that is so many seconds (or milliseconds `ms`, microseconds `us`) after 1970-01-01 in UTC."""
    _check_unit("from_timestamp", unit)
    place, step = zone_of(zone), 1_000_000 // _PER_SECOND[unit]
    words = of_ticks(f"toInt128({{0}}) * {step}", 6, place)

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        (kind,) = kinds
        if kind is None:
            return None
        if is_float(kind) or not (is_whole(kind) or is_decimal(kind)):
            hint = 'Floats are not exact: cast them first, as with cast("Decimal(18, 6)").' if is_float(kind) else ""
            raise InputError(
                field="from_timestamp", value=str(kind), rule="it needs whole numbers or decimals", hint=hint
            )
        text = words
        if is_decimal(kind):
            scale = kind.bare.numbers[1]
            told = quoting.text("from_timestamp: a value has parts of a microsecond")
            units, whole = f"toInt256(toDecimal256({{0}}, {scale}) * {10**scale})", 10**scale
            exact = f"intDiv(u, {whole}) + throwIf(modulo(u, {whole}) != 0, {told})"
            text = of_ticks(f"arrayMap(u -> toInt128({exact}), [{units} * {step}])[1]", 6, place)
        return Worded(null_or(text, kinds), like(Type("DateTime64", numbers=(6,), zone=place), kind))

    return Operation(words, typed=typing, makes="aware")


def _check_unit(name: str, unit: object) -> None:
    if unit not in _PER_SECOND:
        rule = f"it must be one of {', '.join(_PER_SECOND)}"
        raise InputError(field=name, value=shown(repr(unit)), rule=rule, hint="")


_T = '["2024-03-05 06:07:08.5"]'
_AT, _NOON = "[datetime(2024, 3, 5, 6, 7, 8, 500_000)]", "[datetime(2024, 3, 5, 12, tzinfo=UTC)]"
_LAST_OF_JANUARY = "[date(2024, 1, 31)]"

TIMES = {
    "year": gives("toYear({0})", _YEAR).telling("the year", _AT, "year()", "[2024]"),
    "quarter": gives("toQuarter({0})", _BYTE).telling("1 to 4", _AT, "quarter()", "[1]"),
    "month": gives("toMonth({0})", _BYTE).telling("1 to 12", _AT, "month()", "[3]"),
    "day": gives("toDayOfMonth({0})", _BYTE).telling("of the month, from 1", _AT, "day()", "[5]"),
    "hour": gives("toHour({0})", _BYTE).telling("0 to 23", _AT, "hour()", "[6]"),
    "minute": gives("toMinute({0})", _BYTE).telling("0 to 59", _AT, "minute()", "[7]"),
    "second": gives("toSecond({0})", _BYTE).telling("0 to 59", _AT, "second()", "[8]"),
    "microsecond": gives(f"positiveModulo({_MICROS}, 1000000)", _LONG).telling(
        "0 to 999999", _AT, "microsecond()", "[500000]"
    ),
    "weekday": gives("(toDayOfWeek({0}) - 1)", Type("Int16")).telling(
        "0 for Monday, as in Python", _AT, "weekday()", "[1]"
    ),
    "iso_week": gives("toISOWeek({0})", _BYTE).telling(
        "of the ISO calendar, from 1", "[date(2021, 1, 1)]", "iso_week()", "[53]"
    ),
    "iso_year": gives("toISOYear({0})", _YEAR).telling(
        "the year of that week", "[date(2021, 1, 1)]", "iso_year()", "[2020]"
    ),
    "day_of_year": gives("toDayOfYear({0})", _YEAR).telling("from 1", _AT, "day_of_year()", "[65]"),
    "days_in_month": gives(_DAYS, _BYTE).telling("28 to 31", "[date(2024, 2, 1)]", "days_in_month()", "[29]"),
    "is_leap": condition(_LEAP).telling("whether its year has 366 days", "[date(2024, 2, 1)]", "is_leap()", "[True]"),
    "date": gives("toDate32({0})", DATE).telling("its day", _AT, "date()", "[date(2024, 3, 5)]"),
    "start_of": made(
        begun,
        "the start of its second, minute, hour or day; the first day of its week, month, quarter or year",
        _AT,
        'start_of("month")',
        "[date(2024, 3, 1)]",
    ),
    "end_of": made(
        ended, "the last day of its week, month, quarter or year", _AT, 'end_of("month")', "[date(2024, 3, 31)]"
    ),
    "add_days": made(
        stepped("days"),
        "this many calendar days later, at the same time of the clock",
        _LAST_OF_JANUARY,
        "add_days(1)",
        "[date(2024, 2, 1)]",
    ),
    "add_weeks": made(
        stepped("weeks"), "this many weeks later", _LAST_OF_JANUARY, "add_weeks(-1)", "[date(2024, 1, 24)]"
    ),
    "add_months": made(
        stepped("months"),
        "this many months later; a day that does not exist becomes the last of the month",
        _LAST_OF_JANUARY,
        "add_months(1)",
        "[date(2024, 2, 29)]",
    ),
    "add_quarters": made(
        stepped("quarters"), "this many quarters later", _LAST_OF_JANUARY, "add_quarters(1)", "[date(2024, 4, 30)]"
    ),
    "add_years": made(
        stepped("years"), "this many years later", "[date(2024, 2, 29)]", "add_years(1)", "[date(2025, 2, 28)]"
    ),
    "days_until": gives(_UNTIL, _LONG, 2).telling(
        "the number of days until the other day", "[date(2024, 2, 28)]", "days_until(date(2024, 3, 1))", "[2]"
    ),
    "timestamp": made(
        timestamp, "seconds since 1970 in UTC, or `ms`, `us`; rounded down", _NOON, "timestamp()", "[1709640000]"
    ),
    "from_timestamp": made(
        from_timestamp,
        "the moment of such a number; `zone` is its time zone",
        "[1709640000]",
        "from_timestamp()",
        _NOON,
    ),
    "strftime": made(
        written, "as a text, by Python's codes", _AT, 'strftime("%d.%m.%Y %H:%M")', '["05.03.2024 06:07"]'
    ),
    "strptime": made(
        read,
        "the time of a text, by Python's codes; a text of another form is refused, or None with `strict=False`",
        '["5 Mar 2024 6:07"]',
        'strptime("%d %b %Y %H:%M")',
        "[datetime(2024, 3, 5, 6, 7)]",
    ),
    "tz_localize": made(
        localized,
        "attaches a zone to times without one; `None` drops the zone. Times that clocks skip or show twice are refused",
        "[datetime(2024, 3, 5, 12)]",
        'tz_localize("UTC")',
        _NOON,
    ),
    "tz_convert": made(
        converted, "the same moments in another zone", _NOON, 'tz_convert("Europe/Rome").hour()', "[13]"
    ),
}
