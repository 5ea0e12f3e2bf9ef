"""When a schedule fires, also where clocks are moved."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise, product, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.schedules.cron import (
    Schedule,
    find_zone,
    fires,
    latest_fires,
    next_fire,
    next_fires,
    parse_schedule,
    previous_fire,
)

BERLIN = "Europe/Berlin"
GAP = datetime(2026, 3, 28, 12, tzinfo=UTC)
FOLD = datetime(2026, 10, 24, 12, tzinfo=UTC)


def shown(text: str, zone: str, after: datetime, count: int = 3) -> list[str]:
    found = next_fires(parse_schedule(text), find_zone(zone), after, count)
    return [fire.isoformat(timespec="minutes") for fire in found]


# ---------------------------------------------------------------- clocks that are moved


def test_a_time_that_is_shown_twice_fires_once() -> None:
    expected = ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00", "2026-10-27T02:30+01:00"]
    assert shown("30 2 * * *", BERLIN, FOLD) == expected


def test_a_time_that_is_left_out_fires_right_after_the_gap() -> None:
    expected = ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00", "2026-03-31T02:30+02:00"]
    assert shown("30 2 * * *", BERLIN, GAP) == expected


def test_all_times_of_a_gap_are_one() -> None:
    expected = ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00", "2026-03-30T02:20+02:00"]
    assert shown("*/20 2 * * *", BERLIN, GAP) == expected
    assert shown("0 2,3 * * *", BERLIN, GAP, 2) == ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]


def test_every_hour_is_every_hour_that_passes() -> None:
    after = datetime(2026, 10, 24, 23, 30, tzinfo=UTC)
    expected = ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"]
    assert shown("0 * * * *", BERLIN, after) == expected
    after = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    assert shown("0 * * * *", BERLIN, after, 2) == ["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"]


def test_after_the_first_half_of_a_fold_the_second_does_not_fire() -> None:
    between = datetime(2026, 10, 25, 0, 45, tzinfo=UTC)  # 02:45 for the first time
    assert shown("30 2 * * *", BERLIN, between, 1) == ["2026-10-26T02:30+01:00"]


def test_midnights_that_a_gap_leaves_out() -> None:
    after = datetime(2026, 4, 23, 12, tzinfo=UTC)
    assert shown("0 0 * * *", "Africa/Cairo", after, 2) == ["2026-04-24T01:00+03:00", "2026-04-25T00:00+03:00"]


def test_a_day_that_a_zone_left_out() -> None:
    after = datetime(2011, 12, 29, 20, tzinfo=UTC)
    assert shown("0 8 * * *", "Pacific/Apia", after, 2) == ["2011-12-31T00:00+14:00", "2011-12-31T08:00+14:00"]


TWENTY = (
    "30 2 * * *",
    "0 2 * * *",
    "59 1 * * *",
    "0 3 * * *",
    "0 0 * * *",
    "*/20 2 * * *",
    "0 */2 * * *",
    "15 1-3 * * *",
    "30 1,2,3 * * 0",
    "0 * * * *",
    "*/15 * * * *",
    "7 * * * sun",
    "30 * 25-31 3,10 *",
    "* 2 * 3,4,10,11 *",
    "0 2 * * mon-fri",
    "30 2 29 3 *",
    "30 2 25 10 sun",
    "45 2 */2 * sun",
    "0 12 29 2 *",
    "5 4 31 * *",
)


@cache
def walls(zone: str, year: int) -> list[tuple[datetime, datetime]]:
    """Every minute of a year with what the wall shows."""
    place, start = find_zone(zone), datetime(year, 1, 1, tzinfo=UTC)
    moments = (start + timedelta(minutes=minute) for minute in range(366 * 24 * 60))
    return [(moment, moment.astimezone(place).replace(tzinfo=None)) for moment in moments]


@cache
def passed_over(zone: str, year: int) -> dict[datetime, list[datetime]]:
    """What the wall never shows, by the moment at which it was left out."""
    found: dict[datetime, list[datetime]] = {}
    seen = walls(zone, year)
    for (_, before), (moment, wall) in pairwise(seen):
        minutes = int((wall - before).total_seconds()) // 60
        if minutes > 1:
            found[moment] = [before + timedelta(minutes=minute) for minute in range(1, minutes)]
    return found


@cache
def by_time_of_day(zone: str, year: int) -> dict[tuple[int, int], list[tuple[datetime, date, bool]]]:
    """The same minutes by what the clock on the wall shows: the moment, the day, and whether that was shown before."""
    found: dict[tuple[int, int], list[tuple[datetime, date, bool]]] = {}
    seen: set[datetime] = set()
    for moment, wall in walls(zone, year):
        found.setdefault((wall.hour, wall.minute), []).append((moment, wall.date(), wall in seen))
        seen.add(wall)
    return found


def counted(schedule: Schedule, zone: str, year: int) -> list[datetime]:
    """The same question, answered by looking at every minute of the year whose time of day is named."""
    fits = cache(schedule.fits_day)

    def matches(wall: datetime) -> bool:
        return wall.minute in schedule.minutes and wall.hour in schedule.hours and fits(wall.date())

    found = set()
    for time_of_day in product(schedule.hours, schedule.minutes):
        for moment, day, again in by_time_of_day(zone, year).get(time_of_day, []):
            if fits(day) and (schedule.every_hour or not again):
                found.add(moment)
    if not schedule.every_hour:
        found.update(moment for moment, out in passed_over(zone, year).items() if any(map(matches, out)))
    return sorted(found)


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "Australia/Lord_Howe"])
def test_twenty_schedules_fire_through_a_year_as_a_count_of_every_minute_says(zone: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ends = start + timedelta(minutes=366 * 24 * 60)
    for text in TWENTY:
        schedule = parse_schedule(text)
        expected = counted(schedule, zone, 2026)
        after = start - timedelta(microseconds=1)
        found = list(takewhile(lambda fire: fire < ends, fires(schedule, find_zone(zone), after)))
        assert found == expected, text


@given(st.integers(0, 10 * 365 * 24 * 3600), st.sampled_from(TWENTY))
def test_the_next_fire_is_later_and_nothing_fires_before_it(seconds: int, text: str) -> None:
    after = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    schedule, zone = parse_schedule(text), find_zone(BERLIN)
    fire = next_fire(schedule, zone, after)
    assert fire > after
    assert next_fire(schedule, zone, fire - timedelta(microseconds=1)) == fire
    middle = after + (fire - after) / 2
    assert next_fire(schedule, zone, middle) == fire


# ---------------------------------------------------------------- days


def test_either_day_is_enough_where_both_are_named() -> None:
    expected = ["2026-11-15T00:00+00:00", "2026-11-20T00:00+00:00", "2026-11-27T00:00+00:00"]
    assert shown("0 0 15 * fri", "UTC", datetime(2026, 11, 14, tzinfo=UTC)) == expected


def test_both_days_count_where_one_begins_with_a_star() -> None:
    assert shown("0 0 */2 * fri", "UTC", datetime(2026, 11, 14, tzinfo=UTC), 1) == ["2026-11-27T00:00+00:00"]


def test_leap_days_are_waited_for() -> None:
    assert shown("0 0 29 2 *", "UTC", datetime(2026, 1, 1, tzinfo=UTC), 1) == ["2028-02-29T00:00+00:00"]
    assert shown("0 0 29 2 */7", "UTC", datetime(2089, 1, 1, tzinfo=UTC), 1) == ["2128-02-29T00:00+00:00"]


def test_names_words_and_sundays() -> None:
    assert parse_schedule("0 0 * JAN-Mar Sun").months == {1, 2, 3}
    assert parse_schedule("0 0 * * 7").weekdays == parse_schedule("0 0 * * sun").weekdays == {0}
    assert parse_schedule("0 0 * * fri-sun").weekdays == {0, 5, 6}
    assert parse_schedule("5/20 * * * *").minutes == (5, 25, 45)
    daily = parse_schedule("@daily")
    assert (daily.minutes, daily.hours, daily.text) == ((0,), (0,), "@daily")
    assert parse_schedule("  0\t8  * * * ").text == "0 8 * * *"


# ---------------------------------------------------------------- the latest


def test_the_latest_times_are_found_without_counting_all() -> None:
    until = datetime(2026, 11, 15, 12, 0, 30, tzinfo=UTC)
    found = latest_fires(parse_schedule("* * * * *"), UTC, datetime(1990, 1, 1, tzinfo=UTC), until, 3)
    assert [fire.minute for fire in found] == [58, 59, 0]
    yearly = latest_fires(parse_schedule("@yearly"), UTC, datetime(1990, 6, 1, tzinfo=UTC), until, 2)
    assert [fire.year for fire in yearly] == [2025, 2026]
    assert latest_fires(parse_schedule("@yearly"), UTC, datetime(2026, 6, 1, tzinfo=UTC), until, 2) == []


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "schedule"),
        ("   ", "schedule"),
        ("* * * *", "schedule"),
        ("* * * * * *", "schedule"),
        ("* * * * * * *", "schedule"),
        ("0\n0 * * *", "schedule"),
        ("0 0 * * *\n", "schedule day of week"),
        ("@reboot", "schedule"),
        ("0 0 " + "1," * 200 + "1 * *", "schedule"),
        (5, "schedule"),
        (None, "schedule"),
        ("61 * * * *", "schedule minute"),
        ("-1 * * * *", "schedule minute"),
        ("*/0 * * * *", "schedule minute"),
        ("*/90 * * * *", "schedule minute"),
        ("\uff11 * * * *", "schedule minute"),
        ("1,,2 * * * *", "schedule minute"),
        ("30-10 * * * *", "schedule minute"),
        ("*-5 * * * *", "schedule minute"),
        ("* 24 * * *", "schedule hour"),
        ("* ٣ * * *", "schedule hour"),
        ("0 0 0 * *", "schedule day of month"),
        ("0 0 L * *", "schedule day of month"),
        ("0 0 ? * *", "schedule day of month"),
        ("0 0 30 2 *", "schedule day of month"),
        ("0 0 31 feb,apr,jun,sep,nov *", "schedule day of month"),
        ("0 0 30 2 */2", "schedule day of month"),
        ("0 0 * 13 *", "schedule month"),
        ("0 0 * janu *", "schedule month"),
        ("0 0 * * 8", "schedule day of week"),
        ("0 0 * * mon#2", "schedule day of week"),
        ("0 0 * * sat-mon", "schedule day of week"),
    ],
)
def test_a_refused_schedule_names_its_field(text: object, field: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_schedule(text)
    assert refused.value.facts["field"] == field


def test_a_date_that_never_comes_is_fine_where_a_weekday_comes() -> None:
    assert shown("0 0 30 2 mon", "UTC", datetime(2026, 1, 1, tzinfo=UTC), 1) == ["2026-02-02T00:00+00:00"]


@pytest.mark.parametrize(
    "name",
    ["", "../../etc/passwd", "/etc/passwd", "Europe", "Europe/Nowhere", "right/UTC", "localtime", "CET ", "a" * 300, 5],
)
def test_a_refused_zone_is_named(name: object) -> None:
    with pytest.raises(InputError, match="timezone: "):
        find_zone(name)


def test_a_zone_with_a_slip_is_guessed() -> None:
    with pytest.raises(InputError, match="Did you mean Europe/Berlin"):
        find_zone("europe/berlin")


def test_the_end_of_all_times_is_refused() -> None:
    with pytest.raises(InputError, match="nothing fires"):
        next_fire(parse_schedule("0 0 * * *"), UTC, datetime(9999, 6, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "zone", "before", "expected"),
    [
        ("0 8 * * *", "UTC", "2026-01-02T08:00:00+00:00", "2026-01-01T08:00:00+00:00"),
        ("@monthly", "UTC", "2026-03-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"),
        ("@yearly", "UTC", "2026-01-01T00:00:00+00:00", "2025-01-01T00:00:00+00:00"),
        ("0 0 29 2 *", "UTC", "2028-02-29T00:00:00+00:00", "2024-02-29T00:00:00+00:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-30T00:30:00+00:00", "2026-03-29T01:00:00+00:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-26T01:30:00+00:00", "2026-10-25T00:30:00+00:00"),
        ("@hourly", "Europe/Berlin", "2026-10-25T01:00:00+00:00", "2026-10-25T00:00:00+00:00"),
    ],
)
def test_the_time_before_another(text: str, zone: str, before: str, expected: str) -> None:
    found = previous_fire(parse_schedule(text), find_zone(zone), datetime.fromisoformat(before))
    assert found.isoformat() == expected
