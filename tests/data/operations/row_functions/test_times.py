"""Functions of days and times, compared with Python's."""

from __future__ import annotations

import calendar
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aaiclick.data import Context, col
from aaiclick.errors import DataRefused, InputError

ROME = ZoneInfo("Europe/Rome")
CHANCE = random.Random(5)
SPAN_S = 399 * 365 * 86_400
MOMENTS = [
    datetime(1900, 1, 3, tzinfo=UTC) + timedelta(seconds=CHANCE.randrange(SPAN_S), microseconds=CHANCE.randrange(10**6))
    for _ in range(150)
]
MOMENTS += [datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]

PARTS: dict[str, Callable[[datetime], Any]] = {
    "quarter": lambda t: (t.month - 1) // 3 + 1,
    "microsecond": lambda t: t.microsecond,
    "iso_week": lambda t: t.isocalendar().week,
    "iso_year": lambda t: t.isocalendar().year,
    "day_of_year": lambda t: t.timetuple().tm_yday,
    "days_in_month": lambda t: calendar.monthrange(t.year, t.month)[1],
    "is_leap": lambda t: calendar.isleap(t.year),
    "weekday": lambda t: t.weekday(),
    "year": lambda t: t.year,
    "hour": lambda t: t.hour,
    "date": lambda t: t.date(),
}


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Rome", "Asia/Kolkata"])
async def test_the_parts_of_times_are_pythons(context: Context, zone: str | None) -> None:
    given = [t.replace(tzinfo=None) if zone is None else t.astimezone(ZoneInfo(zone)) for t in MOMENTS]
    if zone not in (None, "UTC"):
        given = [t for t in given if t.year >= 1971]  # before, zones had differences of odd seconds
    made = await context.create_object_from_value({"t": given})
    found = await made.select(**{name: getattr(col("t"), name)() for name in PARTS}).data()
    for name, python in PARTS.items():
        assert found[name] == [python(t) for t in given], name


async def test_the_parts_of_days_are_pythons(context: Context) -> None:
    days = [t.date() for t in MOMENTS]
    made = await context.create_object_from_value({"d": days})
    names = [name for name in PARTS if name not in ("microsecond", "hour")]
    found = await made.select(**{name: getattr(col("d"), name)() for name in names}).data()
    for name in names:
        wanted = [PARTS[name](datetime(day.year, day.month, day.day)) for day in days]  # noqa: DTZ001
        assert found[name] == wanted, name
    assert await made["d"].days_until(date(2000, 1, 1)).data() == [(date(2000, 1, 1) - day).days for day in days]


@pytest.mark.parametrize(("unit", "step"), [("s", 10**6), ("ms", 1000), ("us", 1)])
async def test_timestamps_lead_there_and_back(context: Context, unit: str, step: int) -> None:
    epoch, tick = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
    made = await context.create_object_from_value([*MOMENTS, None])
    stamps = [(t - epoch) // tick // step for t in MOMENTS]
    assert await made.timestamp(unit).data() == [*stamps, None]
    back = await context.create_object_from_value([*stamps, None])
    assert await back.from_timestamp(unit).data() == [*(epoch + stamp * step * tick for stamp in stamps), None]
    (found,) = await (await context.create_object_from_value([0])).from_timestamp(unit, "Europe/Rome").data()
    assert (found, found.tzinfo) == (epoch, ROME)


async def test_a_timestamp_that_is_no_exact_moment_is_refused(context: Context) -> None:
    exact = await context.create_object_from_value([Decimal("1.500000")])
    assert await exact.from_timestamp().data() == [datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)]
    for given in ([Decimal("0.0000001")], [10**12], [-(10**12)]):
        made = await context.create_object_from_value(given)
        with pytest.raises(DataRefused, match=r"refused|parts of a microsecond"):
            await made.from_timestamp().data()
    for wrong in ([1.5], ["1"]):
        made = await context.create_object_from_value(wrong)
        with pytest.raises(InputError, match="from_timestamp"):
            made.from_timestamp()
    for name in ("timestamp", "from_timestamp"):
        with pytest.raises(InputError, match="one of s, ms, us"):
            getattr(exact, name)("hours")


@pytest.mark.parametrize("unit", ["minute", "hour", "day", "week", "month", "quarter", "year"])
async def test_units_begin_where_clocks_of_the_zone_say(context: Context, unit: str) -> None:
    given = [t.astimezone(ROME) for t in MOMENTS if t.year >= 1980]
    given += [
        datetime(2024, 3, 31, 1, 59, tzinfo=ROME),
        datetime(2024, 10, 27, 3, 0, tzinfo=ROME),
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ROME),
    ]
    made = await context.create_object_from_value(given)
    wanted: list[Any] = [_begun(t, unit) for t in given]
    assert await made.start_of(unit).data() == wanted


def _begun(time: datetime, unit: str) -> Any:
    day = time.date()
    match unit:
        case "minute":
            return time.replace(second=0, microsecond=0)
        case "hour":
            return time.replace(minute=0, second=0, microsecond=0)
        case "day":
            return datetime(day.year, day.month, day.day, tzinfo=ROME)
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    return day.replace(month=1, day=1)
