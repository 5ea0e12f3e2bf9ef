"""Times with a zone and times without one: on every road, and never beside each other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aaiclick.data import Context, Object, View, col, concat, create_object, create_object_from_value, lit
from aaiclick.data.clocks import as_time, check_alike, check_taken, clock_of, common_clock, is_left_out
from aaiclick.errors import InputError
from tests.support.roads import NEAR_ROADS, ROADS, SHORT_ROADS, TIMES, compare_meanings, difference, walk_roads

ROME = ZoneInfo("Europe/Rome")
NAIVE, AWARE = TIMES[0], TIMES[0].replace(tzinfo=UTC)
CONVERT = r"Attach a zone with tz_localize\('Europe/Rome'\), or drop it with tz_localize\(None\)"


@pytest.mark.parametrize("road", [*ROADS, *SHORT_ROADS, *NEAR_ROADS])
async def test_a_time_without_a_zone_comes_back_as_it_was(context: Context, tmp_path: Path, road: str) -> None:
    walk = {**ROADS, **SHORT_ROADS, **NEAR_ROADS}[road]
    made = await walk(tmp_path, NAIVE)
    assert made.schema["t"].type in [
        f"{before}DateTime64({digits}){after}" for digits in (6, 9) for before, after in (("", ""), ("Nullable(", ")"))
    ]
    assert await difference(made, NAIVE) == ""


@pytest.mark.parametrize("zone", [UTC, ROME], ids=str)
async def test_a_time_with_a_zone_comes_back_with_one_and_equal(context: Context, tmp_path: Path, zone: Any) -> None:
    assert await walk_roads(tmp_path, datetime(2024, 7, 1, 12, 30, 0, 5, tzinfo=zone)) == {}


async def test_the_first_and_the_last_times_come_back(context: Context, tmp_path: Path) -> None:
    for time in TIMES[-2:]:
        assert await walk_roads(tmp_path, time) == {}


async def test_clickhouse_means_by_times_what_python_means(context: Context) -> None:
    assert await compare_meanings(await create_object_from_value({"t": TIMES})) == {}


async def test_a_list_keeps_its_one_zone_and_is_in_utc_if_it_has_several_or_only_offsets(context: Context) -> None:
    five = timezone(timedelta(hours=5, minutes=30))
    for zones, kind in (
        ([ROME, ROME], "Europe/Rome"),
        ([ROME, UTC], "UTC"),
        ([five, five], "UTC"),
        ([UTC, UTC], "UTC"),
    ):
        given = [datetime(2024, 1, 1, tzinfo=zone) for zone in zones]
        made = await create_object_from_value(given)
        assert made.schema["value"].type == f"DateTime64(6, '{kind}')"
        assert await made.data() == given


async def test_the_second_of_two_same_hours_survives(context: Context) -> None:
    given = [datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=ROME) for fold in (0, 1)]
    found = await (await create_object_from_value(given)).data()
    assert [each.fold for each in found] == [0, 1]
    assert [each.timestamp() for each in found] == [each.timestamp() for each in given]


MIXES: dict[str, Callable[[Any, Any], Any]] = {
    "compare": lambda n, a: n < a,
    "equal": lambda n, a: n == a,
    "subtract": lambda n, a: n - a,
    "fill": lambda n, a: n.fill_null(a),
    "coalesce": lambda n, a: n.coalesce(a),
    "choose": lambda n, a: (n == n).choose(n, a),
    "least": lambda n, a: n.least(a),
    "clip": lambda n, a: n.clip(a, a),
    "lag": lambda n, a: n.lag(1, a).over(order_by="n"),
    "isin": lambda n, a: n.isin([a]),
    "max": lambda n, a: n.max().over() < a,
    "collected": lambda n, a: n.collect().over().has(a),
    "moved": lambda n, a: (n + 1) < a,
    "cut": lambda n, a: n.start_of("hour") < a,
}


@pytest.mark.parametrize("mix", [name for name in MIXES if name != "isin"])
async def test_both_in_one_expression_are_refused(context: Context, mix: str) -> None:
    made = await create_object_from_value({"n": [NAIVE], "a": [AWARE]})
    for one, other in ((col("n"), col("a")), (col("a"), col("n")), (col("n"), lit(AWARE)), (col("a"), lit(NAIVE))):
        with pytest.raises(InputError, match=CONVERT):
            made.with_columns(x=MIXES[mix](one, other))
    for one, other in ((col("n"), lit(NAIVE)), (col("a"), lit(AWARE)), (col("n"), col("a").tz_localize(None))):
        assert await made.with_columns(x=MIXES[mix](one, other)).count() == 1


async def test_both_are_refused_among_values_and_rows(context: Context) -> None:
    made = await create_object_from_value({"n": [NAIVE], "a": [AWARE]})
    other = await create_object_from_value({"a": [AWARE], "b": [NAIVE]})
    refused: list[Callable[[], Any]] = [
        lambda: made["n"].isin([NAIVE, AWARE]),
        lambda: made["n"].isin(made["a"]),
        lambda: made.where(col("n").isin(["2024-01-01 00:00:00Z"])),
        lambda: made["n"] > "2024-01-01 00:00:00+01:00",
        lambda: made["a"] > "2024-01-01 00:00:00",
        lambda: made["a"] > date(2024, 1, 1),
        lambda: concat(made["n"], made["a"]),
        lambda: concat(made, other.rename({"a": "n", "b": "a"})),
        lambda: made.join(other, on={"n": "a"}),
        lambda: made["n"].max() - made["a"].max(),
        lambda: made["n"].cast("DateTime64(6, 'UTC')"),
        lambda: made["a"].cast("Nullable(DateTime)"),
    ]
    for each in refused:
        with pytest.raises(InputError, match=CONVERT):
            each()
    assert await made.join(other, on={"n": "b"}).count() == 1
    assert await made[["n"]].isin(iter([NAIVE, None])).data() == {"n": [True]}
    assert await (await create_object_from_value([[NAIVE], []])).isin([[NAIVE]]).data() == [True, False]
    short = await create_object_from_value([NAIVE.replace(microsecond=0)], fields={"value": "DateTime"})
    assert await short.isin(made["n"]).data() == [False]
    assert await made["n"].isin(short).data() == [False]
    assert await made["n"].isin(other["b"]).data() == [True]


GIVEN: dict[str, Callable[[datetime], Any]] = {
    "list": lambda time: [time],
    "arrow": lambda time: pa.array([time]),
    "polars": lambda time: pl.Series([time]),
    "pandas": lambda time: pd.Series([time]),
}


@pytest.mark.parametrize("given", GIVEN)
async def test_what_is_inserted_is_as_its_column(context: Context, given: str) -> None:
    for kind, right, wrong, told in (
        ("DateTime64(6)", NAIVE, AWARE, "a time with a zone, and .* has none"),
        ("DateTime64(6, 'UTC')", AWARE, NAIVE, "a time without a zone, and .* has one"),
    ):
        made = await create_object({"value": kind})
        assert await made.insert(GIVEN[given](right)) == 1
        with pytest.raises(InputError, match=f"column value, row 0 .*{told}"):
            await made.insert(GIVEN[given](wrong))
        with pytest.raises(InputError, match=CONVERT):
            await made.insert(await create_object_from_value(GIVEN[given](wrong)))
        with pytest.raises(InputError, match=told):
            await create_object_from_value(GIVEN[given](wrong), fields={"value": kind})
        assert await made["value"].data() == [right]


async def test_a_time_that_clocks_leave_out_is_refused(context: Context) -> None:
    with pytest.raises(InputError, match="skip this time"):
        await create_object_from_value([datetime(2026, 3, 29, 2, 30, tzinfo=ROME)])
    made = await create_object_from_value([AWARE])
    with pytest.raises(InputError, match="skip this time"):
        await (made < datetime(2026, 3, 29, 2, 30, tzinfo=ROME)).data()


async def test_nanoseconds_are_kept_and_not_cut(context: Context) -> None:
    fine = pd.DataFrame({"t": pd.to_datetime(["2024-01-02 03:04:05.123456789"])})
    made = await create_object_from_value(fine)
    assert made.schema["t"].type == "DateTime64(9)"
    assert (await made.df())["t"][0] == fine["t"][0]
    with pytest.raises(InputError, match=r"column t, row 0 .*03:04:05\.123456789.*microseconds"):
        await made.data()
    assert "2024-01-02 03:04:05.123456789" in await made.markdown()
    assert await made["t"].start_of("microsecond").data() == [datetime(2024, 1, 2, 3, 4, 5, 123456)]  # noqa: DTZ001
    with pytest.raises(InputError, match="keeps 6 digits"):
        await create_object_from_value(fine, fields={"t": "DateTime64(6)"})


async def test_rows_in_order_lists_and_groups_of_times_stay_without_a_zone(context: Context) -> None:
    one = await create_object_from_value({"t": TIMES}, order=True)
    other = await create_object_from_value({"u": TIMES[::-1]}, order=True)
    assert await one.data() == {"t": TIMES}
    assert await (one["t"] == other["u"]).data() == [a == b for a, b in zip(TIMES, TIMES[::-1], strict=True)]
    listed = await create_object_from_value([{"k": 1, "l": TIMES[:2]}, {"k": 2, "l": []}])
    assert await listed.explode("l")["l"].data() == TIMES[:2]
    assert await listed.explode("l").where(col("l") == TIMES[1]).data("records") == [{"k": 1, "l": TIMES[1]}]
    groups = one.with_columns(h=col("t").hour()).group_by("h").agg(first=("t", "min"), n="count")
    assert (await groups.order_by("h").data())["first"][0] == datetime(1900, 1, 1)  # noqa: DTZ001
    assert await one.unique("t").count() == len(TIMES)
    seen = one.where(col("t") > TIMES[0])
    assert isinstance(seen, View)
    assert "'UTC'" not in seen.reference()["where"]


async def test_seconds_move_times_whole(context: Context) -> None:
    made: Object = await create_object_from_value([NAIVE])
    assert await (made + 1).data() == [NAIVE + timedelta(seconds=1)]
    with pytest.raises(InputError, match="whole seconds"):
        made + 1.5


def test_values_tell_whether_their_times_have_a_zone() -> None:
    assert clock_of(NAIVE) == clock_of([NAIVE, None]) == clock_of({"a": (NAIVE,)}) == "naive"
    assert clock_of(AWARE) == clock_of({"a": AWARE}) == "aware"
    assert clock_of(5) == clock_of(date(2024, 1, 1)) == clock_of([NAIVE, AWARE]) == ""
    assert common_clock(["", "naive", ""]) == "naive"
    check_alike("here", "", "naive", "naive")
    check_taken("aware", "")
    with pytest.raises(InputError, match="here: times with a zone beside times without a zone"):
        check_alike("here", "aware", "", "naive")
    with pytest.raises(InputError, match="a zone already"):
        check_taken("naive", "aware")


@pytest.mark.parametrize(
    "text", ["2024-02-30", "2024-01-01 25:00:00", "", "1", "20240101", "2024-01-01 00:00:00.1234567"]
)
def test_a_text_beside_times_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="combined with times"):
        as_time(text)


def test_a_text_or_a_day_beside_times_is_one() -> None:
    assert as_time("2024-01-02T03:04:05.678901") == NAIVE
    assert as_time("2024-01-02 03:04:05.678901Z") == AWARE
    assert as_time("2024-01-02") == as_time(date(2024, 1, 2)) == datetime(2024, 1, 2)  # noqa: DTZ001
    assert as_time(NAIVE) is NAIVE
    assert as_time(5) == 5


def test_what_clocks_leave_out_is_known() -> None:
    assert is_left_out(datetime(2026, 3, 29, 2, 30, tzinfo=ROME))
    for time in (datetime(2026, 10, 25, 2, 30, tzinfo=ROME), datetime(2026, 3, 29, 3, 0, tzinfo=ROME), AWARE, NAIVE):
        assert not is_left_out(time)
