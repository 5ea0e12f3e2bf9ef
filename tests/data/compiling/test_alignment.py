"""Which rows belong together."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, Frame, Object, col
from aaiclick.data.compiling.alignment import aggregates_of, columns_of, columns_to_sum, side_by_side
from aaiclick.data.query.relations import Aligned
from aaiclick.errors import DataRefused, NotAligned


@pytest.fixture
async def first(context: Context) -> Object:
    return await context.create_object_from_value([1, 2, 3], order=True)


@pytest.fixture
async def second(context: Context) -> Object:
    return await context.create_object_from_value([10, 20, 30], order=True)


async def test_ordered_objects_go_row_by_row(first: Object, second: Object) -> None:
    assert await (first + second).data() == [11, 22, 33]
    assert await (first * 2 - second).data() == [-8, -16, -24]
    assert await ((first > 1) & (second < 30)).data() == [False, True, False]


async def test_what_comes_of_ordered_objects_is_ordered(first: Object, second: Object) -> None:
    made = await (first + second)
    assert made.schema.ordered
    assert await (made - first).data() == [10, 20, 30]


async def test_many_ordered_objects_are_side_by_side_not_nested(context: Context, first: Object) -> None:
    total: Frame = first
    for _ in range(12):
        total = total + await context.create_object_from_value([1, 2, 3], order=True)
    assert await total.data() == [13, 26, 39]
    assert isinstance(columns_of(total._relation).base, Aligned)
    assert len(total.explain()) < 8_000


async def test_each_side_may_be_side_by_side_already(first: Object, second: Object) -> None:
    third = await (first * 100)
    assert await ((first + second) * (third + first)).data() == [11 * 101, 22 * 202, 33 * 303]


async def test_different_lengths_are_refused_even_if_one_is_empty(context: Context, first: Object) -> None:
    empty = await context.create_object({"value": "Int64"}, order=True)
    for pair in ((first, empty), (empty, first), (first, first.where("value > 1"))):
        with pytest.raises(DataRefused, match="different numbers of rows"):
            await (pair[0] + pair[1]).data()
    assert await (empty + empty.where("1")).data() == {"value": []}


async def test_rows_without_an_order_belong_to_no_others(context: Context, numbers: Object, first: Object) -> None:
    other = await context.create_object_from_value([1, 2, 3, 4])
    for pair in ((numbers, other), (numbers, first), (first, numbers), (numbers.limit(2), first)):
        with pytest.raises(NotAligned, match="order=True"):
            _ = pair[0] + pair[1]


async def test_columns_of_one_object_belong_together(sales: Object) -> None:
    assert await (sales["price"] * sales["pieces"]).data() == [4.5, None, 2.5, 8.0]


async def test_columns_of_one_view_belong_together(sales: Object) -> None:
    seen = sales.where("price > 2").order_by("price", descending=True).limit(1)
    assert await (seen["price"] + seen["pieces"]).data() == [6.0]
    with pytest.raises(NotAligned):
        _ = seen["price"] + sales["price"]


async def test_one_value_goes_with_every_row(context: Context, numbers: Object) -> None:
    single = await context.create_object_from_value(10)
    assert await (numbers + single).data() == [11, 12, 13, 14]
    assert await (single - numbers).data() == [9, 8, 7, 6]
    assert await (numbers - numbers.mean()).data() == [-1.5, -0.5, 0.5, 1.5]
    assert await (single * 2 + numbers.sum()).data() == 30


async def test_totals_of_the_same_rows_are_one_query(numbers: Object) -> None:
    span = numbers.max() - numbers.min()
    assert await span.data() == 3
    assert span.explain().count("FROM `") == 1
    assert aggregates_of(span._relation) is not None
    assert aggregates_of(numbers._relation) is None


async def test_what_looks_at_rows_around_is_summed_up_afterwards(numbers: Object) -> None:
    running = numbers.with_columns(s=col("value").cumsum().over(order_by="value"))
    assert columns_to_sum(running._relation).base is running._relation
    assert columns_to_sum((numbers + 1)._relation).base is numbers._relation
    assert await running["s"].sum().data() == 1 + 3 + 6 + 10


async def test_the_same_base_needs_no_order(numbers: Object) -> None:
    base, columns = side_by_side([columns_of(numbers._relation), columns_of((numbers + 1)._relation)])
    assert base is numbers._relation
    assert len(columns) == 2


# ---------------------------------------------------------------- one query, written twice


@pytest.fixture
async def trades(context: Context) -> Object:
    return await context.create_object_from_value({"k": ["x", "x", "y"], "p": [1, 2, 3], "q": [10, 20, 30]})


async def test_a_query_that_is_written_twice_is_one(trades: Object) -> None:
    def dear() -> Frame:
        return trades.where(col("p") > 1)

    assert await (dear()["p"] + dear()["q"]).data() == [22, 33]
    assert await (trades.where("p > 1")["p"] + trades.where("p > 1")["q"]).data() == [22, 33]
    assert (await dear().with_columns(z=dear()["q"] + 1).data())["z"] == [21, 31]
    assert await dear().where(dear()["q"] > 20)["p"].data() == [3]
    top = trades.order_by("q", descending=True).limit(2)
    assert await (top["p"] * trades.order_by("q", descending=True).limit(2)["q"]).data() == [90, 40]


async def test_columns_computed_in_steps_belong_to_the_rows_that_they_come_of(trades: Object) -> None:
    doubled = trades.select(z=col("p") * 2).select(y=col("z") + 1)
    assert await (doubled["y"] + trades["q"]).data() == [13, 25, 37]
    assert await (trades.where("p > 1").select(z=col("p") * 2)["z"] + trades.where("p > 1")["q"]).data() == [24, 36]
    running = trades.select(z=col("p").sum().over("k")).select(y=col("z") + 1)
    assert await (running["y"] + trades["q"]).data() == [14, 24, 34]


async def test_totals_of_the_same_groups_go_together(trades: Object) -> None:
    by = trades.group_by("k")
    assert sorted(await (by.sum("q")["q"] / by.count()["count"]).data()) == [15.0, 30.0]
    assert sorted(await (by.sum("p")["p"] + by.max("p")["p"]).data()) == [5, 6]
    with pytest.raises(NotAligned):
        by.sum("q")["q"] + trades.group_by("q").sum("p")["p"]


async def test_rows_that_may_be_others_do_not_go_together(trades: Object) -> None:
    for one, other in (("p > 1", "p > 2"), ("rand() > 1", "rand() > 1"), ("p > 1", "q > 10")):
        with pytest.raises(NotAligned, match="order_by"):
            trades.where(one)["p"] + trades.where(other)["q"]
    with pytest.raises(NotAligned):
        trades["p"] + trades.where("p > 0")["q"]


# ---------------------------------------------------------------- by position


async def test_sorted_queries_go_row_by_row(trades: Object, first: Object, second: Object) -> None:
    down = trades.order_by("p", descending=True)
    assert await (down["p"] + first).data() == [4, 4, 4]
    assert await (down.limit(2)["q"] + second.offset(1)).data() == [50, 50]
    assert await (first.offset(1) - first.limit(2)).data() == [1, 1]
    assert await ((first + second).limit(2) + second.offset(1)).data() == [31, 52]
    made = await (down["p"] + first)
    assert made.schema.ordered


async def test_rows_that_are_equal_in_what_they_are_sorted_by_have_no_place(trades: Object, first: Object) -> None:
    for unsure in (trades.order_by("k")["p"], trades.order_by("k").where(col("p") > 0)["p"]):
        with pytest.raises(DataRefused, match="sort by more columns"):
            await (unsure + first).data()
    with pytest.raises(DataRefused, match="sort by more columns"):
        await (trades.order_by("k").limit(1)["p"] + first.limit(1)).data()
    assert await (trades.order_by("k")["k"].length() + first).data() == [2, 3, 4]  # equal in all that is asked of them
    assert await (trades.order_by("k", "p")["p"] + first).data() == [2, 4, 6]


async def test_slices_of_different_lengths_are_refused(first: Object, second: Object) -> None:
    with pytest.raises(DataRefused, match="different numbers of rows"):
        await (first.limit(2) + second).data()
