"""Which rows belong together."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, Frame, Object, col
from aaiclick.data.alignment import aggregates_of, columns_of, columns_to_sum, side_by_side
from aaiclick.data.relations import Aligned
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
    for pair in ((numbers, other), (numbers, first), (first, numbers), (first, first.limit(3))):
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
