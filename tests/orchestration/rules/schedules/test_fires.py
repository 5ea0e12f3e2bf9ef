"""Which times of a schedule run, and which were missed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.schedules.cron import find_zone, parse_schedule
from aaiclick.orchestration.rules.schedules.fires import (
    COUNTED_MAX,
    BackfillStatus,
    Due,
    MissedRuns,
    TimeState,
    check_range,
    count_times,
    due_fires,
    end_of_backfill,
    fires_within,
    is_run,
    read_when,
)

DAILY = parse_schedule("0 8 * * *")
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
THREE_DAYS_AGO = datetime(2026, 11, 13, 8, tzinfo=UTC)


def due(missed: MissedRuns, now: datetime = NOW, missed_max: int = 10, text: str = "0 8 * * *") -> Due:
    return due_fires(parse_schedule(text), UTC, THREE_DAYS_AGO, now, missed, missed_max)


def test_missed_times_are_left_out() -> None:
    assert due(MissedRuns.NONE) == Due((), 3, datetime(2026, 11, 16, 8, tzinfo=UTC))


def test_a_time_that_was_just_noticed_is_not_missed() -> None:
    soon = datetime(2026, 11, 15, 8, 0, 2, tzinfo=UTC)
    assert due(MissedRuns.NONE, soon).fires == (datetime(2026, 11, 15, 8, tzinfo=UTC),)
    assert due(MissedRuns.NONE, soon).missed == 2


def test_the_latest_missed_time_is_made_up_for() -> None:
    assert due(MissedRuns.LATEST) == Due((NOW.replace(hour=8),), 2, datetime(2026, 11, 16, 8, tzinfo=UTC))


def test_all_missed_times_are_made_up_for_up_to_a_number() -> None:
    assert [fire.day for fire in due(MissedRuns.ALL).fires] == [13, 14, 15]
    some = due(MissedRuns.ALL, missed_max=2)
    assert ([fire.day for fire in some.fires], some.missed) == ([14, 15], 1)


def test_very_many_missed_times_are_not_counted_to_the_end() -> None:
    assert due(MissedRuns.LATEST, NOW + timedelta(days=900), text="* * * * *").missed == COUNTED_MAX + 1


def test_a_range_holds_its_start_and_not_its_end() -> None:
    found = fires_within(DAILY, UTC, THREE_DAYS_AGO, THREE_DAYS_AGO + timedelta(days=2))
    assert [fire.day for fire in found] == [13, 14]


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        (datetime(2026, 1, 1), NOW, "start"),  # noqa: DTZ001
        ("2026-01-01", NOW, "start"),
        (NOW, NOW, "start"),
        (THREE_DAYS_AGO, NOW + timedelta(seconds=1), "end"),
        (THREE_DAYS_AGO, None, "end"),
    ],
)
def test_a_refused_range_names_its_field(start: object, end: object, field: str) -> None:
    with pytest.raises(InputError) as refused:
        check_range(start, end, UTC, NOW)
    assert refused.value.facts["field"] == field
    assert "it is before" not in str(refused.value)


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        ("UTC", date(2026, 3, 29), "2026-03-29T00:00:00+00:00"),
        ("Europe/Berlin", date(2026, 3, 29), "2026-03-28T23:00:00+00:00"),
        ("Africa/Cairo", date(2026, 4, 24), "2026-04-23T22:00:00+00:00"),  # its day begins at 01:00
        ("America/Havana", date(2026, 11, 1), "2026-11-01T04:00:00+00:00"),  # midnight comes twice
        ("Pacific/Kiritimati", date(2026, 1, 1), "2025-12-31T10:00:00+00:00"),
    ],
)
def test_a_day_is_its_first_moment_in_the_zone(zone: str, day: date, expected: str) -> None:
    start, _ = check_range(day, day + timedelta(days=1), find_zone(zone), NOW)
    assert start.isoformat() == expected


@pytest.mark.parametrize("text", ["2026-02-30", "2026-1-1", "20260101x", "", "now", "2026-01-01T25:00"])
def test_what_is_no_day_and_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        read_when(text, "start")
    assert refused.value.facts["field"] == "start"


def test_a_day_is_read_as_one() -> None:
    assert type(read_when("2026-01-31", "start")) is date
    assert read_when("2026-01-31T08:00:00+01:00", "start") == datetime(2026, 1, 31, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("state", "plain", "force", "failed"),
    [
        ("new", True, True, False),
        ("skipped", True, True, False),
        ("queued", False, False, False),
        ("running", False, False, False),
        ("completed", False, True, False),
        ("failed", False, True, True),
        ("cancelled", False, True, False),
        ("gone", False, True, False),
    ],
)
def test_which_times_a_backfill_runs(state: str, plain: bool, force: bool, failed: bool) -> None:
    known = TimeState(state)
    assert is_run(known, force=False, failed_only=False) is plain
    assert is_run(known, force=True, failed_only=False) is force
    assert is_run(known, force=False, failed_only=True) is failed


def test_a_backfill_ends_as_its_runs_did() -> None:
    assert end_of_backfill({}) == "completed"
    assert end_of_backfill({"completed": 2}) == "completed"
    assert end_of_backfill({"completed": 2, "cancelled": 1}) == "completed_with_failures"
    assert end_of_backfill({"failed": 1, "cancelled": 1}) == "failed"


def test_all_times_of_a_backfill_are_counted() -> None:
    runs = {"completed": 1, "failed": 2, "pending": 1, "running": 1}
    counted = count_times(BackfillStatus.RUNNING, 10, 3, runs)
    assert counted == {"completed": 1, "failed": 2, "running": 2, "left_alone": 3, "waiting": 2}
    assert count_times(BackfillStatus.CANCELLED, 4, 0, {"completed": 1}) == {"completed": 1, "without_run": 3}
    assert count_times(BackfillStatus.COMPLETED, 0, 0, {"completed": 4}) == {"completed": 4}
