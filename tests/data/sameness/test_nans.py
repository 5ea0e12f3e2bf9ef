"""NaN: one rule for all verbs."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from aaiclick.data import Context, Object, col

TOTALS = ["sum", "mean", "min", "max", "median", "std", "var"]
KINDS = ["Float64", "Float32", "Nullable(Float64)", "Nullable(Float32)"]
ROWS = {"k": [1, 2, 3, 4, 5], "g": ["a", "a", "a", "b", "b"], "x": [2.0, nan, 1.0, 4.0, 3.0]}


async def made(context: Context, kind: str = "Float64", **columns: Any) -> Object:
    return await context.create_object_from_value({**ROWS, **columns}, fields={"x": kind})


async def other_nans(context: Context) -> Object:
    """Those of 0 / 0, of a constant and of a root have different bits."""
    rows = await context.create_object_from_value({"k": [1, 2, 3, 4], "a": [0.0, 0.0, 1.0, -1.0]})
    zero = col("a") / 0.0
    return await rows.with_columns(x=(col("k") == 2).choose(nan, (col("k") == 4).choose(col("a").sqrt(), zero)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TOTALS)
async def test_a_total_with_a_nan_is_nan_and_one_without_is_a_number(context: Context, name: str, kind: str) -> None:
    rows = await made(context, kind)
    whole = await getattr(rows["x"], name)().data()
    found = await getattr(rows.group_by("g"), name)("x").order_by("g").data()
    around = await rows.with_columns(t=getattr(col("x"), name)().over("g")).order_by("k")["t"].data()
    assert whole != whole
    assert found["x"][0] != found["x"][0]
    assert around[0] != around[0]
    assert found["x"][1] == around[3] == around[4] > 0


@pytest.mark.parametrize("place", [0, 0.3, 1])
async def test_so_is_a_quantile(context: Context, place: float) -> None:
    rows = await made(context)
    found = await rows.group_by("g").agg(q=col("x").quantile(place)).order_by("g")["q"].data()
    assert found[0] != found[0]
    assert found[1] == 3 + place


@pytest.mark.parametrize("first", [nan, 2.0])
@pytest.mark.parametrize("kind", KINDS)
async def test_it_matters_not_where_the_nan_stands(context: Context, kind: str, first: float) -> None:
    rows = await context.create_object_from_value([first, 2.0 if first != first else nan], fields={"value": kind})
    assert str(await rows.agg(a=col("value").max(), b=col("value").min(), c=col("value").median()).data()) == str(
        {"a": nan, "b": nan, "c": nan}
    )


async def test_the_type_of_the_least_is_that_of_the_values(context: Context) -> None:
    rows = await made(context, "Float32")
    assert rows["x"].max().schema.types == {"x": "Nullable(Float32)"}


async def test_of_nothing_and_of_none_the_greatest_is_none(context: Context) -> None:
    empty = await context.create_object_from_value([None, None], fields={"value": "Nullable(Float64)"})
    assert await empty.max().data() is None
    assert await empty.limit(0).min().data() is None


async def test_running_extremes_are_nan_from_there_on(context: Context) -> None:
    rows = await made(context)
    found = await rows.with_columns(
        high=col("x").cummax().over(order_by="k"), low=col("x").cummin().over(order_by="k")
    ).data()
    assert str(found["high"]) == str(found["low"]) == str([2.0, nan, nan, nan, nan])


@pytest.mark.parametrize("name", ["least", "greatest"])
async def test_of_several_the_least_is_nan_where_one_is(context: Context, name: str) -> None:
    rows = await context.create_object_from_value({"a": [1.0, nan, nan, 1.0], "b": [nan, 2.0, nan, 2.0]})
    assert str((await getattr(rows["a"], name)(rows["b"]).data())[:3]) == str([nan, nan, nan])
    assert str((await getattr(rows["a"], name)(0.5).data())[1]) == "nan"


async def test_a_none_among_several_is_left_out(context: Context) -> None:
    rows = await context.create_object_from_value({"a": [None, nan, 1.0]})
    assert str(await rows["a"].greatest(0.5).data()) == str([0.5, nan, 1.0])


async def test_signed_beside_unsigned_is_not_taken_for_unsigned(context: Context) -> None:
    texts = await context.create_object_from_value(["ab", ""], fields={"value": "LowCardinality(String)"})
    sizes = texts.length()
    assert await (sizes - 3).greatest(abs(sizes)).data() == [2, 0]
    assert await (sizes - 3).least(abs(sizes)).data() == [-1, -3]


async def test_nan_is_not_clipped_into_the_range(context: Context) -> None:
    rows = await context.create_object_from_value([None, nan, 9.0, -inf])
    assert str(await rows.clip(0.0, 2.0).data()) == str([None, nan, 2.0, 0.0])


async def test_nan_has_no_sign(context: Context) -> None:
    rows = await context.create_object_from_value([None, nan, 9.0, -inf, -0.0])
    assert str(await rows.sign().data()) == str([None, nan, 1.0, -1.0, 0.0])
    assert await (await context.create_object_from_value([3, -3])).sign().data() == [1, -1]


async def test_nans_of_any_bits_are_one_key(context: Context) -> None:
    rows = await other_nans(context)
    constant = await context.create_object_from_value([nan])
    assert await rows["x"].nunique().data() == 2
    assert len(await rows["x"].unique().data()) == 2
    assert len(await rows.unique("x")["k"].data()) == 2
    assert sorted((await rows.group_by("x").count("n").data())["n"]) == [1, 3]
    assert sorted((await rows.value_counts("x").data())["count"]) == [1, 3]
    assert await rows["x"].isin([nan]).data() == [True, True, False, True]
    assert await rows["x"].isin(constant).data() == [True, True, False, True]
    assert await constant.isin(rows["x"]).data() == [True]
    assert await rows.join(constant, on={"x": "value"}).count() == 3
    assert await rows.deduplicate("x", order_by="k").count() == 2


async def test_compared_it_is_unlike_everything_even_itself(context: Context) -> None:
    rows = await context.create_object_from_value([nan, 1.0])
    for found in (rows == rows, rows <= 1.0, rows >= 1.0):
        assert await found.data() == [False, True]
    assert await (rows != rows).data() == [True, False]


@pytest.mark.parametrize("down", [False, True])
async def test_it_is_sorted_behind_all_numbers_and_before_none(context: Context, down: bool) -> None:
    rows = await context.create_object_from_value([nan, 1.0, None, inf, -inf])
    numbers = [inf, 1.0, -inf] if down else [-inf, 1.0, inf]
    assert str(await rows.order_by("value", descending=down).data()) == str([*numbers, nan, None])


async def test_what_is_chosen_by_order_takes_a_number_first(context: Context) -> None:
    rows = await made(context)
    assert await rows.agg(a=col("k").argmax(col("x")), b=col("k").argmin(col("x"))).data() == {"a": 4, "b": 3}
    assert await rows.top(4, "x")["k"].data() == [4, 5, 1, 3]


async def test_it_counts_and_can_be_left_out(context: Context) -> None:
    rows = await made(context)
    assert await rows.agg(n=col("x").count(), m=col("x").fill_nan(None).mean()).data() == {"n": 5, "m": 2.5}
