"""Which times of a schedule run, and which were missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.cron import parse_schedule
from aaiclick.orchestration.rules.schedules import COUNTED_MAX, Due, MissedRuns, check_range, due_fires, fires_within

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
        check_range(start, end, NOW)
    assert refused.value.facts["field"] == field
