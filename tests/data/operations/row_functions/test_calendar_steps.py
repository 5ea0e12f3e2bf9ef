"""Steps of a calendar, compared with a plain one."""

from __future__ import annotations

import calendar
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from aaiclick.data import Context, col
from aaiclick.errors import DataRefused, InputError

ROME = ZoneInfo("Europe/Rome")
DAYS = [date(1900, 1, 1), date(1969, 12, 31), date(2023, 1, 31), date(2024, 2, 29), date(2299, 12, 31)]
ENDS = (date(1900, 1, 1), date(2299, 12, 31))


def later(day: date, months: int) -> date | None:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1900 <= year <= 2299:
        return None
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


@pytest.mark.parametrize(("unit", "size"), [("months", 1), ("quarters", 3), ("years", 12)])
@pytest.mark.parametrize("count", [-14, -1, 0, 1, 13, 390])
async def test_months_go_on_as_in_a_calendar_or_are_refused(context: Context, unit: str, size: int, count: int) -> None:
    for day in DAYS:
        made = await context.create_object_from_value({"d": [day], "t": [datetime(day.year, day.month, day.day, 7)]})  # noqa: DTZ001
        found = made.select(d=getattr(col("d"), f"add_{unit}")(count), t=getattr(col("t"), f"add_{unit}")(count))
        if (wanted := later(day, count * size)) is None:
            with pytest.raises(DataRefused, match="out of the range"):
                await found.data()
        else:
            moved = datetime(wanted.year, wanted.month, wanted.day, 7)  # noqa: DTZ001
            assert await found.data() == {"d": [wanted], "t": [moved]}


async def test_days_and_weeks_keep_the_time_of_the_clock(context: Context) -> None:
    given = [datetime(2024, 3, 30, 12, tzinfo=ROME), datetime(2024, 10, 26, 12, tzinfo=ROME)]
    made = await context.create_object_from_value(given)
    assert await made.add_days(1).data() == [each + timedelta(days=1) for each in given]  # Python's is the clock's, too
    assert await made.add_weeks(-1).data() == [each - timedelta(days=7) for each in given]
    assert await made.add_months(1).data() == [each.replace(month=each.month + 1) for each in given]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (datetime(2024, 3, 30, 2, 30, tzinfo=ROME), "skip it"),
        (datetime(2024, 10, 26, 2, 30, tzinfo=ROME), "twice"),
    ],
)
async def test_what_clocks_leave_out_or_show_twice_is_refused(context: Context, given: datetime, told: str) -> None:
    made = await context.create_object_from_value([given])
    with pytest.raises(DataRefused, match=told):
        await made.add_days(1).data()


async def test_the_count_may_be_a_column(context: Context) -> None:
    made = await context.create_object_from_value({"d": [date(2024, 1, 31)] * 3, "n": [1, None, -1]})
    assert await made.select(x=col("d").add_months(col("n"))).data() == {
        "x": [date(2024, 2, 29), None, date(2023, 12, 31)]
    }
    for wrong in (lambda: made["d"].add_days(1.5), lambda: made["n"].add_days(1)):
        with pytest.raises(InputError, match="add_days"):
            wrong()


@pytest.mark.parametrize("day", DAYS)
async def test_the_last_day_of_each_unit_is_found(context: Context, day: date) -> None:
    made = await context.create_object_from_value({"d": [day], "t": [datetime(day.year, day.month, day.day, 23)]})  # noqa: DTZ001
    first = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    quarter = date(first.year + first.month // 10, (first.month + 2) % 12 + 1, 1) - timedelta(days=1)
    wanted = {
        "week": day + timedelta(days=6 - day.weekday()),
        "month": day.replace(day=calendar.monthrange(day.year, day.month)[1]),
        "quarter": quarter,
        "year": date(day.year, 12, 31),
    }
    for unit, last in wanted.items():
        found = made.select(d=col("d").end_of(unit), t=col("t").end_of(unit))
        assert await found.data() == {"d": [last], "t": [last]}, unit
    with pytest.raises(InputError, match="start_of"):
        made["t"].end_of("day")
