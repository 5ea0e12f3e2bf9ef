"""The verbs of times, beside Python's own."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aaiclick.data import Context, create_object_from_value
from aaiclick.data.operations.row_functions.time_verbs import begun, converted, localized, written
from aaiclick.errors import DataRefused, InputError
from tests.support.roads import compare_meanings

LONG = os.environ.get("TEST_LONG") == "1"
ROME = ZoneInfo("Europe/Rome")
GAP, FOLD = datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001
HALF = timedelta(minutes=30)


def random_times(seed: int, count: int, years: tuple[int, int] = (1900, 2299)) -> list[datetime]:
    chance, first = random.Random(seed), datetime(years[0], 1, 2)  # noqa: DTZ001
    span = int((datetime(years[1], 12, 30) - first).total_seconds() * 1_000_000)  # noqa: DTZ001
    return [first + timedelta(microseconds=chance.randrange(span)) for _ in range(count)]


async def test_any_time_means_what_python_means(context: Context) -> None:
    times = random_times(1, 20_000 if LONG else 200)
    assert await compare_meanings(await create_object_from_value({"t": times}), times) == {}


@pytest.mark.parametrize("zone", ["Europe/Rome", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"])
async def test_any_time_is_localized_as_python_does(context: Context, zone: str) -> None:
    known, times = ZoneInfo(zone), random_times(2, 20_000 if LONG else 200, (1972, 2036))
    times = [time for time in times if is_once(time, known)]
    made = await create_object_from_value(times)
    found = made.tz_localize(zone)
    assert await found.data() == [time.replace(tzinfo=known) for time in times]
    assert [each.utcoffset() for each in await found.data()] == [
        time.replace(tzinfo=known).utcoffset() for time in times
    ]
    assert await found.tz_localize(None).data() == times
    in_tokyo = await found.tz_convert("Asia/Tokyo").data()
    assert {str(each.tzinfo) for each in in_tokyo} == {"Asia/Tokyo"}
    assert [each.timestamp() for each in in_tokyo] == [time.replace(tzinfo=known).timestamp() for time in times]


def is_once(time: datetime, zone: ZoneInfo) -> bool:
    first, second = time.replace(tzinfo=zone), time.replace(tzinfo=zone, fold=1)
    return first.utcoffset() == second.utcoffset()


@pytest.mark.parametrize(
    ("times", "refused"),
    [
        ([GAP], "the clocks of Europe/Rome skip it"),
        ([GAP - HALF], "skip it"),
        ([GAP + HALF - timedelta(microseconds=1)], "skip it"),
        ([FOLD], "the clocks of Europe/Rome show it twice"),
        ([FOLD - HALF], "twice"),
        ([None, FOLD], "twice"),
        ([GAP - HALF - timedelta(microseconds=1), GAP + HALF, None], ""),
        ([FOLD - HALF - timedelta(microseconds=1), FOLD + HALF], ""),
    ],
)
async def test_where_clocks_are_changed_there_is_one_time_or_none(
    context: Context, times: list[Any], refused: str
) -> None:
    made = await create_object_from_value(times)
    if refused:
        with pytest.raises(DataRefused, match=rf"a time is refused: .*{refused}\.$"):
            await made.tz_localize("Europe/Rome").data()
    else:
        expected = [time and time.replace(tzinfo=ROME) for time in times]
        assert await made.tz_localize("Europe/Rome").data() == expected


@pytest.mark.parametrize(
    "kind", ["DateTime", "DateTime64(0)", "DateTime64(3)", "DateTime64(9)", "Nullable(DateTime64(6))"]
)
async def test_the_digits_of_a_time_stay(context: Context, kind: str) -> None:
    time = datetime(2024, 7, 1, 12)  # noqa: DTZ001
    made = await create_object_from_value([time], fields={"value": kind})
    there = await made.tz_localize("Europe/Rome")
    back = await there.tz_localize(None)
    assert (there.schema["value"].type, back.schema["value"].type) == (kind_in(kind, "Europe/Rome"), kind)
    assert (await there.data(), await back.data()) == ([time.replace(tzinfo=ROME)], [time])


def kind_in(kind: str, zone: str) -> str:
    if "64" in kind:
        return kind.replace(")", f", '{zone}')", 1)
    return kind.replace("DateTime", f"DateTime('{zone}')")


async def test_a_time_out_of_range_is_refused(context: Context) -> None:
    first = await create_object_from_value([datetime(1970, 1, 1)], fields={"value": "DateTime"})  # noqa: DTZ001
    with pytest.raises(DataRefused, match="out of the range"):
        await first.tz_localize("Asia/Tokyo").data()
    zoned = [datetime(1970, 1, 1, tzinfo=UTC).astimezone(ZoneInfo("America/New_York"))]
    last = await create_object_from_value(zoned, fields={"value": "DateTime('America/New_York')"})
    with pytest.raises(DataRefused, match="out of the range"):
        await last.tz_localize(None).data()


async def test_times_with_a_zone_are_written_with_their_offset(context: Context) -> None:
    made = await create_object_from_value([datetime(2024, 7, 1, 12, tzinfo=ROME)])
    assert await made.strftime("%H:%M %z {}").data() == ["12:00 +0200 {}"]
    assert await made.cast(str).data() == ["2024-07-01 12:00:00.000000+02:00"]
    assert await made.start_of("day").data() == [datetime(2024, 7, 1, tzinfo=ROME)]


def test_what_is_no_zone_code_or_unit_is_refused() -> None:
    for zone in ("Mars", "'; DROP TABLE x", 5, ""):
        with pytest.raises(InputError, match="no such time zone"):
            localized(zone)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="no such time zone"):
            converted(zone)  # type: ignore[arg-type]
    for form in ("%U", "%", "%Z", "100%", 5):
        with pytest.raises(InputError, match="strftime"):
            written(form)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"one of .*Did you mean"):
        begun("days")
