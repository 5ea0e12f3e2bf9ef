"""Datetimes and times are exact with their zone and fold."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aaiclick.orchestration.rules.values.moments import UnknownZone, read_datetime, read_time, write_moment

DAY = timedelta(hours=23, minutes=59, seconds=59)
zones = st.one_of(
    st.none(),
    st.timedeltas(-DAY, DAY).map(timezone),
    st.builds(timezone, st.timedeltas(-DAY, DAY), st.sampled_from(["", "CET", "UTC", "UTC+01:00", "ä"])),
    st.sampled_from(["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "UTC"]).map(ZoneInfo),
)


def facts_of(moment: datetime | time) -> tuple[object, ...]:
    clock = moment.replace(tzinfo=None).isoformat()
    return clock, moment.fold, moment.utcoffset(), moment.tzname(), type(moment.tzinfo), type(moment)


@given(st.datetimes(timezones=zones, allow_imaginary=True), st.integers(0, 1))
def test_a_datetime_comes_back_as_it_was(moment: datetime, fold: int) -> None:
    moment = moment.replace(fold=fold)
    found = read_datetime(*write_moment(moment))
    assert facts_of(found) == facts_of(moment)


@given(st.times(timezones=zones), st.integers(0, 1))
def test_a_time_comes_back_as_it_was(moment: time, fold: int) -> None:
    moment = moment.replace(fold=fold)
    found = read_time(*write_moment(moment))
    assert facts_of(found) == facts_of(moment)


def test_the_text_is_plain_iso_where_that_says_everything() -> None:
    assert write_moment(datetime(2024, 1, 2, tzinfo=UTC)) == ("2024-01-02T00:00:00+00:00", {})
    assert write_moment(datetime(2024, 1, 2)) == ("2024-01-02T00:00:00", {})  # noqa: DTZ001 naive stays naive


def test_a_named_zone_keeps_what_its_clock_shows() -> None:
    moment = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris"))
    assert write_moment(moment) == ("2024-10-27T02:30:00", {"zone": "Europe/Paris", "fold": 1})


def test_microseconds_alone_are_not_lost_from_an_offset() -> None:
    moment = datetime(2024, 1, 1, tzinfo=timezone(timedelta(microseconds=1)))
    assert read_datetime(*write_moment(moment)).utcoffset() == timedelta(microseconds=1)


def test_a_zone_without_a_name_or_unknown_here_is_refused() -> None:
    with pytest.raises(UnknownZone):
        write_moment(datetime(2024, 1, 1, tzinfo=timezone(timedelta(0), "\ud800")))
    with pytest.raises(UnknownZone, match="Europe/Nowhere"):
        read_datetime("2024-01-01T00:00:00", {"zone": "Europe/Nowhere"})
