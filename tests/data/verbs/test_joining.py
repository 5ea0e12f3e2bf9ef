"""Joins with suffixes on both sides, of every row with every row, and with the nearest in time."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from aaiclick.data import Context, Object, concat
from aaiclick.errors import DataRefused, InputError


@pytest.fixture
async def trades(context: Context) -> Object:
    return await context.create_object_from_value(
        {"who": ["a", "b", "a", "b", "a"], "t": [1, 5, 10, 3, None], "n": [1, 2, 3, 4, 5]}
    )


@pytest.fixture
async def quotes(context: Context) -> Object:
    return await context.create_object_from_value(
        {"who": ["a", "a", "b", "b", "b"], "t": [1, 4, 4, 6, None], "price": [0.5, 1.5, 2.5, 3.5, 4.5]}
    )


async def test_both_sides_may_have_a_suffix(trades: Object, quotes: Object) -> None:
    joined = trades.join(quotes, on="who", left_suffix="_mine", suffix="_theirs")
    assert joined.columns == ("who", "t_mine", "n", "t_theirs", "price")
    found = joined.order_by("n", "t_theirs").limit(2)
    assert await found.data(orient="records") == [
        {"who": "a", "t_mine": 1, "n": 1, "t_theirs": 1, "price": 0.5},
        {"who": "a", "t_mine": 1, "n": 1, "t_theirs": 4, "price": 1.5},
    ]
    with pytest.raises(InputError, match="Choose another suffix"):
        trades.with_columns(t_mine=1).join(quotes, on="who", left_suffix="_mine")
    with pytest.raises(InputError, match="it must be an Object, a View or a query"):
        trades.join([1, 2], on="who")  # type: ignore[arg-type]


async def test_every_row_with_every_row(trades: Object, quotes: Object) -> None:
    crossed = trades.cross_join(quotes[["price"]])
    assert crossed.columns == ("who", "t", "n", "price")
    assert await crossed.count() == 25
    assert trades.cross_join(trades).columns == ("who", "t", "n", "who_right", "t_right", "n_right")


@pytest.mark.parametrize("direction", ["backward", "forward"])
@pytest.mark.parametrize("tolerance", [None, 2])
async def test_the_nearest_is_what_pandas_finds(trades: Object, quotes: Object, direction: Any, tolerance: Any) -> None:
    found = trades.join_asof(quotes, on="t", by="who", direction=direction, tolerance=tolerance).order_by("n")
    left, right = (frame.dropna().sort_values("t") for frame in (await trades.df(), await quotes.df()))
    left["t"], right["t"] = left["t"].astype("int64"), right["t"].astype("int64")
    wanted = pd.merge_asof(left, right, on="t", by="who", direction=direction, tolerance=tolerance).sort_values("n")
    prices = [None if math.isnan(each) else each for each in wanted["price"]]
    assert found.columns == ("who", "t", "n", "price")
    assert await found["price"].data() == [*prices, None]


async def test_the_nearest_without_keys_and_with_other_names(context: Context, trades: Object) -> None:
    marks = await context.create_object_from_value({"at": [2, 7], "mark": ["early", "late"], "n": [0, 0]})
    found = trades.join_asof(marks, on={"t": "at"}, left_suffix="_trade", suffix="").order_by("n_trade")
    assert found.columns == ("who", "t", "n_trade", "at", "mark", "n")
    assert await found.select("at", "mark").data() == {
        "at": [None, 2, 7, 2, None],
        "mark": [None, "early", "late", "early", None],
    }
    assert await trades.where("0").join_asof(marks, on={"t": "at"}).count() == 0
    assert await trades.join_asof(marks.where("0"), on={"t": "at"})["mark"].unique().data() == [None]


async def test_nan_is_near_to_nothing(context: Context) -> None:
    left = await context.create_object_from_value({"x": [math.nan, 1.0, -math.inf, math.inf]})
    right = await context.create_object_from_value({"x": [0.5, math.nan, 2.0], "y": [1, 2, 3]})
    assert await left.join_asof(right, on="x")["y"].data() == [None, 1, None, 3]
    assert await left.join_asof(right, on="x", direction="forward")["y"].data() == [None, 3, 1, None]


async def test_times_are_near_within_a_duration(context: Context) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    left = await context.create_object_from_value(
        {"t": [start, start + timedelta(microseconds=1_000_001), start + timedelta(days=1)]}
    )
    right = await context.create_object_from_value({"t": [start], "list": [[1]], "ok": [True]})
    near = left.join_asof(right[["t", "ok"]], on="t", tolerance=timedelta(seconds=1))
    assert await near["ok"].data() == [True, None, None]
    near = left.join_asof(right[["t", "ok"]], on="t", tolerance=timedelta(microseconds=1_000_001))
    assert await near["ok"].data() == [True, True, None]
    assert await left.join_asof(right, on="t")["list"].data() == [[1], [1], [1]]
    naive = await context.create_object_from_value({"t": [datetime(2024, 1, 1)]})  # noqa: DTZ001 (without a zone on purpose)
    with pytest.raises(InputError, match="zone"):
        left.join_asof(naive, on="t")
    days = await context.create_object_from_value({"t": [date(2024, 1, 1), date(2024, 1, 5)], "n": [1, 2]})
    found = days.join_asof(days.rename({"t": "u", "n": "m"}).where("m = 1"), on={"t": "u"}, tolerance=timedelta(days=2))
    assert await found["m"].data() == [1, None]


def test_what_is_not_near_is_refused(trades: Object, quotes: Object) -> None:
    given: Any
    for given in (
        {"on": "nope"},
        {"on": {"t": "t", "n": "price"}},
        {"on": "t", "by": "n"},
        {"on": "t", "direction": "nearest"},
        {"on": "t", "tolerance": -1},
        {"on": "t", "tolerance": True},
        {"on": "t", "tolerance": "1s"},
        {"on": "t", "tolerance": timedelta(-1)},
    ):
        with pytest.raises(InputError):
            trades.join_asof(quotes, **given)


WIDE = 2**53


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        (("Int64", [-1, WIDE + 1]), ("UInt64", [2**64 - 1, WIDE + 1]), [WIDE + 1]),
        (("Int64", [1, WIDE + 1]), ("Float64", [1.0, float(WIDE)]), [1]),
        (("UInt64", [1, WIDE + 1]), ("Float64", [1.0, float(WIDE)]), [1]),
        (("Int32", [1, 3]), ("Float64", [1.0, 2.5]), [1]),
        (("Int8", [1, 3]), ("Int64", [3, 2**40]), [3]),
        (("Int64", [1, 2]), ("Decimal(18, 2)", [Decimal("1.00"), Decimal("2.50")]), [1]),
    ],
)
async def test_numbers_of_different_types_are_equal_exactly_or_refused(
    context: Context, left: Any, right: Any, both: list[int]
) -> None:
    one, two = [
        await context.create_object_from_value({"k": values}, fields={"k": kind}) for kind, values in (left, right)
    ]
    assert await one.join(two, on="k")["k"].data() == both


@pytest.mark.parametrize(
    ("left", "right", "refused"),
    [
        (("Int64", [-1, WIDE + 1]), ("UInt64", [2**64 - 1]), False),
        (("Int64", [WIDE + 1]), ("Float64", [0.5]), True),
        (("Int32", [1, 3]), ("Float64", [1.0, 2.5]), False),
        (("Int8", [1, 3]), ("UInt32", [2**32 - 1]), False),
    ],
)
async def test_rows_of_different_types_are_kept_exactly_or_refused(
    context: Context, left: Any, right: Any, refused: bool
) -> None:
    one, two = [
        await context.create_object_from_value({"k": values}, fields={"k": kind}) for kind, values in (left, right)
    ]
    if refused:
        with pytest.raises(DataRefused, match="into type Float64"):
            await concat(one, two).data()
    else:
        assert sorted(await concat(one, two)["k"].data()) == sorted([*left[1], *right[1]])


async def test_concat_is_a_method_too(trades: Object) -> None:
    assert await trades.concat(trades, trades.limit(1)).count() == 11
    with pytest.raises(InputError, match="the first has the columns"):
        trades.concat(trades.rename({"n": "m"}))
