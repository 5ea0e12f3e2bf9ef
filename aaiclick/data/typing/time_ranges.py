"""The ranges of ClickHouse's date and time types, checked for whole Arrow columns.

ClickHouse itself would change values beyond a range without an error.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.inference import Unfit
from aaiclick.data.typing.types import UNITS, arrow_of

if TYPE_CHECKING:
    import pyarrow as pa

DAYS = {
    "Date": (date(1970, 1, 1), date(2149, 6, 6)),
    "Date32": (date(1900, 1, 1), date(2299, 12, 31)),
}
SECONDS_MAX = 2**32 - 1
YEARS = (1900, 2299)
"""The first and last year of DateTime64, in its time zone."""

EPOCH = date(1970, 1, 1)
DAY_MS = 86_400_000


def fit_days(array: pa.Array, kind: Type) -> pa.Array:
    """Return Arrow dates as date32; raise Unfit for a date64 with a time of day or a date beyond the type's range."""
    import pyarrow as pa  # here, to keep start-up light

    if array.type == pa.date64():
        _check_whole(array, array.cast(pa.int64()), DAY_MS, f"{kind} holds whole days")
        array = array.cast(pa.date32())
    low, high = DAYS[kind.name]
    rule = f"{kind} holds {low} to {high}"
    _check(array, array.cast(pa.int32()), (low - EPOCH).days, (high - EPOCH).days, rule)
    return array


def fit_moments(array: pa.Array, kind: Type) -> pa.Array:
    """Return Arrow timestamps with the unit and zone of the type.

    Raise Unfit for a time beyond its range or with more digits, and where only one of the column and the type has a
    zone.
    """
    import pyarrow as pa  # here, to keep start-up light

    unit = array.type.unit
    _check_clock(array, kind)
    array = array.cast(pa.timestamp(unit, "UTC" if kind.zone else None))
    ticks = array.cast(pa.int64())
    digits = kind.numbers[0] if kind.numbers else 0
    low, high, rule = _bounds(kind)
    _check(array, ticks, low * 10 ** UNITS[unit], (high + 1) * 10 ** UNITS[unit] - 1, rule)
    if digits < UNITS[unit]:
        _check_whole(array, ticks, 10 ** (UNITS[unit] - digits), f"{kind} keeps {digits} digits of a second")
    return array.cast(arrow_of(kind))


def _check_clock(array: pa.Array, kind: Type) -> None:
    """Raise Unfit for times without a zone if the type has one, and the other way round."""
    import pyarrow.compute as pc  # here, to keep start-up light

    at = pc.index(array.is_valid(), True).as_py()
    if at >= 0 and (array.type.tz is None) == bool(kind.zone):
        raise other_clock(at, str(array[at]), kind)


def other_clock(row: int, value: object, kind: Type) -> Unfit:
    """Return the Unfit for a time without a zone in a column that has one, or the other way round."""
    other = replace(kind, zone="" if kind.zone else "UTC")
    if kind.zone:
        hint = f"Add its zone, such as tzinfo=datetime.UTC, or make the type {other}."
        return Unfit(row, value, f"a time without a zone, and {kind} has one", hint)
    return Unfit(row, value, f"a time with a zone, and {kind} has none", f"Drop its zone, or make the type {other}.")


def _bounds(kind: Type) -> tuple[int, int, str]:
    """Return the first and the last second since 1970 that the type holds, and the rule for the error message."""
    if kind.name == "DateTime":
        return 0, SECONDS_MAX, f"{kind} holds 1970-01-01 to 2106-02-07 06:28:15 in UTC"
    zone = ZoneInfo(kind.zone or "UTC")
    low, high = (int(datetime(year, 1, 1, tzinfo=zone).timestamp()) for year in (YEARS[0], YEARS[1] + 1))
    if kind.numbers[0] > 6:  # the limit of 64-bit nanoseconds
        return low, 2**63 // 10**9 - 1, f"{kind} holds {YEARS[0]} to 2262-04-11"
    return low, high - 1, f"{kind} holds the years {YEARS[0]} to {YEARS[1]}"


def _check_whole(array: pa.Array, ticks: pa.Array, step: int, rule: str) -> None:
    """Raise Unfit for the first value that is not a multiple of `step`."""
    import pyarrow.compute as pc  # here, to keep start-up light

    whole = pc.multiply(pc.divide(ticks, step), step)
    at = pc.index(pc.not_equal(whole, ticks), True).as_py()
    if at >= 0:
        raise Unfit(at, array[at], rule)


def _check(array: pa.Array, numbers: pa.Array, low: int, high: int, rule: str) -> None:
    import pyarrow.compute as pc  # here, to keep start-up light

    found: Any = pc.min_max(numbers).as_py()
    if found["min"] is None or (low <= found["min"] and found["max"] <= high):
        return
    low, high = max(low, -(2**63)), min(high, 2**63 - 1)
    at = pc.index(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)), True).as_py()
    raise Unfit(at, array[at], rule)
