"""Windows: shifted, ranked, cut into parts, and rolling."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from aaiclick.data import Context, Object, col, rank, raw
from aaiclick.errors import DataRefused, InputError

x = col("value")


async def values(query: Any) -> list[Any]:
    return list(await query.order_by("value")["v"].data())


async def test_values_are_shifted_both_ways(numbers: Object) -> None:
    for rows, expected in ((1, [None, 1, 2, 3]), (-2, [3, 4, None, None]), (0, [1, 2, 3, 4]), (9, [None] * 4)):
        assert await values(numbers.with_columns(v=x.shift(rows).over(order_by="value"))) == expected


async def test_steps_of_unsigned_numbers_and_of_days_may_be_negative(context: Context) -> None:
    columns = {"n": [1, 2], "u": [5, 3], "d": [date(2024, 3, 1), date(2024, 2, 1)]}
    made = await context.create_object_from_value(columns, fields={"u": "UInt64"})
    found = made.with_columns(u=col("u").diff().over(order_by="n"), d=col("d").diff().over(order_by="n"))
    assert await found.order_by("n").data() == {"n": [1, 2], "u": [None, -2], "d": [None, -29]}


async def test_a_step_beyond_the_range_is_refused(context: Context) -> None:
    made = await context.create_object_from_value([2**63 - 1, -(2**63)])
    with pytest.raises(DataRefused, match="beyond the range"):
        await made.with_columns(v=x.diff().over(order_by="value")).data()


async def test_none_has_no_place(context: Context) -> None:
    made = await context.create_object_from_value({"k": [1, 2, 3, 4], "value": [5, None, 5, 1]})
    ways: Any = ("min", "max", "average", "dense", "percent")
    found = await made.select("k", **{way: x.rank(way).over() for way in ways}).order_by("k").data()
    assert found == {
        "k": [1, 2, 3, 4],
        "min": [2, None, 2, 1],
        "max": [3, None, 3, 1],
        "average": [2.5, None, 2.5, 1.0],
        "dense": [2, None, 2, 1],
        "percent": [0.5, None, 0.5, 0.0],
    }
    placed = made.select("k", v=rank("dense").over(order_by="value", descending=True)).order_by("k")
    assert await placed["v"].data() == [1, 3, 1, 2]


def test_a_way_to_rank_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="dense"):
        rank("dens")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="sorted by the column itself"):
        x.rank().over(order_by="value")


async def test_parts_have_numbers_or_labels(numbers: Object) -> None:
    assert await values(numbers.with_columns(v=x.qcut(2).over())) == [0, 0, 1, 1]
    assert await values(numbers.with_columns(v=x.qcut([0, 0.25, 1], labels=["a", "b{}"]).over())) == ["a"] + ["b{}"] * 3
    assert await values(numbers.with_columns(v=x.ntile(3).over())) == [1, 1, 2, 3]
    for parts, labels in ((0, None), ([0.5, 0.1], None), (2, ["a"]), ("2", None)):
        with pytest.raises(InputError):
            x.qcut(parts, labels=labels)  # type: ignore[arg-type]


async def test_windows_of_rows_are_none_until_they_are_full(numbers: Object) -> None:
    rolled = {"a": x.rolling(3).sum(), "b": x.rolling(3, least=1).mean(), "c": x.rolling(2).corr(-x)}
    found = numbers.with_columns(**{name: term.over(order_by="value") for name, term in rolled.items()})
    assert await found.order_by("value").data() == {
        "value": [1, 2, 3, 4],
        "a": [None, None, 6, 9],
        "b": [1.0, 1.5, 2.0, 3.0],
        "c": [None, -1.0, -1.0, -1.0],
    }


START = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "kind", ["DateTime('UTC')", "DateTime64(3, 'UTC')", "DateTime64(6, 'UTC')", "DateTime64(9, 'UTC')"]
)
async def test_windows_of_time_begin_after_their_length(context: Context, kind: str) -> None:
    times = [START + timedelta(minutes=minutes) for minutes in (0, 59, 60, 60, 119, 300)]
    made = await context.create_object_from_value({"t": times, "value": [1, 2, 3, 4, 5, 6]}, fields={"t": kind})
    hour = x.rolling(within=timedelta(hours=1)).sum().over(order_by="t")
    assert await values(made.with_columns(v=hour)) == [1, 3, 9, 9, 12, 6]


async def test_windows_of_days_and_of_numbers(context: Context) -> None:
    days = [date(1969, 12, 30), date(1970, 1, 1), date(1970, 1, 5)]
    made = await context.create_object_from_value({"d": days, "n": [-3, 0, 1], "value": [1, 2, 3]})
    by_day = x.rolling(within=timedelta(days=4), least=2).sum().over(order_by="d")
    assert await values(made.with_columns(v=by_day)) == [None, 3, None]
    by_number = x.rolling(within=3).collect().over(order_by="n")
    assert await values(made.with_columns(v=by_number)) == [[1], [2], [2, 3]]


async def test_times_that_a_window_cannot_tell_apart_are_refused(context: Context) -> None:
    odd = [START, START + timedelta(microseconds=1)]
    made = await context.create_object_from_value({"t": odd, "value": [1, 2]})
    week = x.rolling(within=timedelta(days=7)).sum()
    with pytest.raises(DataRefused, match="no multiple of 1000 microseconds"):
        await made.with_columns(v=week.over(order_by="t")).data()
    coarse = week.over(order_by=col("t").start_of("millisecond"))
    assert await values(made.with_columns(v=coarse)) == [3, 3]
    exact = x.rolling(within=timedelta(microseconds=1)).sum().over(order_by="t")
    assert await values(made.with_columns(v=exact)) == [1, 2]


async def test_windows_of_time_need_a_time(context: Context) -> None:
    made = await context.create_object_from_value({"t": [START, None], "n": [1, 2], "value": [1, 2]})
    hour = x.rolling(within=timedelta(hours=1)).sum()
    with pytest.raises(DataRefused, match="a time is None"):
        await made.with_columns(v=hour.over(order_by="t")).data()
    with pytest.raises(InputError, match="it must be of times or days"):
        made.with_columns(v=hour.over(order_by="n"))
    with pytest.raises(DataRefused, match="code 43"):
        await made.with_columns(v=hour.over(order_by=raw("n"))).data()
    with pytest.raises(DataRefused, match="a time is None"):
        await made.with_columns(v=hour.over(order_by=raw("t"))).data()
    for wrong in ({}, {"rows": 2, "within": 3}, {"rows": 0}, {"within": timedelta(0)}, {"rows": 2, "least": 3}):
        with pytest.raises(InputError):
            x.rolling(**wrong)
    with pytest.raises(InputError, match="an order must tell"):
        hour.over()


def test_what_is_before_is_not_guessed() -> None:
    for term in (x.shift(), x.lag(), x.diff(), x.cumsum(), x.first_value(), x.nth_value(1), x.forward_fill(), rank()):
        with pytest.raises(InputError, match="an order must tell"):
            term.over("k")
    with pytest.raises(InputError, match="timedelta"):
        x.rolling("7D")  # type: ignore[arg-type]


async def test_values_are_filled_from_before_and_from_after(context: Context) -> None:
    made = await context.create_object_from_value({"value": [1, 2, 3, 4], "a": [None, "b", None, "d"]})
    before, after = col("a").forward_fill(), col("a").backward_fill()
    found = made.select("value", v=before.over(order_by="value"), w=after.over(order_by="value")).order_by("value")
    assert await found.data() == {"value": [1, 2, 3, 4], "v": [None, "b", "b", "d"], "w": ["b", "b", "d", "d"]}


async def test_a_window_inside_another_needs_a_step_of_its_own(numbers: Object) -> None:
    steps = x.diff().over(order_by="value")
    with pytest.raises(InputError, match="with_columns"):
        steps.sum().over()
    with pytest.raises(InputError, match="with_columns"):
        numbers.agg(v=steps.sum())
    stepped = numbers.with_columns(step=steps)
    assert await stepped.agg(v=col("step").sum()).data() == {"v": 3}
    assert await values(stepped.with_columns(v=col("step").sum().over())) == [3] * 4


async def test_values_that_may_be_none_are_counted_in_windows(context: Context) -> None:
    made = await context.create_object_from_value({"value": [1, None], "l": [[1], []]})
    assert await made.select(v=x.count().over(), w=col("l").count().over()).data() == {"v": [1, 1], "w": [2, 2]}


@pytest.mark.parametrize("name", ["m", "n", "t", "before"])
async def test_a_column_may_be_called_like_what_is_used_inside(context: Context, name: str) -> None:
    made = await context.create_object_from_value({name: [1, 2, 3, 7]})
    own = col(name)
    found = await made.agg(s=own.skew().round(6), p=own.product(), c=own.collect(order_by=name), o=own.mode()).data()
    assert found == {"s": 0.83315, "p": 42, "c": [1, 2, 3, 7], "o": 1}
    assert await made.select(v=own.qcut(2).over()).order_by("v")["v"].data() == [0, 0, 1, 1]
