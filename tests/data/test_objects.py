"""Objects: inserting values, rows of others, and tokens."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, Object, col
from aaiclick.errors import DataRefused, InputError


async def test_values_are_added(sales: Object) -> None:
    assert await sales.insert({"city": ["Bern"], "price": [1.0], "pieces": [None], "paid": [False]}) == 1
    assert await sales.insert([{"city": "Bern", "price": 2.0, "paid": True}], []) == 1
    assert await sales.where("city = 'Bern'")["pieces"].data() == [None, None]


async def test_the_same_values_may_be_added_again(context: Context) -> None:
    given = await context.create_object_from_value([1])
    for _ in range(3):
        await given.insert([1])
    first = given.limit(1)
    for _ in range(3):
        await given.insert(first)
    assert await given.data() == [1] * 7


async def test_a_token_adds_once(context: Context, numbers: Object) -> None:
    given = await context.create_object({"value": "Int64"})
    for _ in range(3):
        await given.insert([{"value": 1}], [{"value": 2}], token="values")
        await given.insert(numbers, token="rows")
    assert sorted((await given.data())["value"]) == [1, 1, 2, 2, 3, 4]


async def test_rows_of_others_are_cast_or_refused(context: Context, numbers: Object) -> None:
    small = await context.create_object({"value": "Int8"})
    assert await small.insert(numbers * 10) == 4
    with pytest.raises(DataRefused, match="code 70"):
        await small.insert(numbers * 100)
    assert await small.count() == 4


async def test_columns_go_by_their_names(sales: Object) -> None:
    turned = sales[["paid", "pieces", "price", "city"]].limit(1)
    assert await sales.insert(turned) == 1
    for wrong in (sales[["city", "price"]], sales.with_columns(more=1)):
        with pytest.raises(InputError, match=r"missing: .*; unexpected: "):
            await sales.insert(wrong)


async def test_one_column_goes_into_one_whatever_its_name(context: Context, sales: Object) -> None:
    prices = await context.create_object_from_value([0.5])
    assert await prices.insert(sales["price"], 7.5) == 5
    assert await prices.data() == [0.5, 1.5, 2.0, 2.5, 4.0, 7.5]


async def test_an_object_may_be_added_to_itself(numbers: Object) -> None:
    assert await numbers.insert(numbers) == 4
    assert await numbers.data() == [1, 2, 3, 4] * 2


async def test_an_ordered_object_takes_rows_in_their_order(context: Context, numbers: Object) -> None:
    ordered = await context.create_object_from_value([9], order=True)
    await ordered.insert(numbers.order_by("value", descending=True))
    await ordered.insert(ordered)
    assert await ordered.data() == [9, 4, 3, 2, 1] * 2


async def test_what_does_not_fit_is_refused_whole(numbers: Object) -> None:
    with pytest.raises(InputError, match="row 1"):
        await numbers.insert([5, None])
    with pytest.raises(InputError):
        await numbers.insert({"other": [5]})
    assert await numbers.count() == 4


async def test_a_single_value_that_became_two_is_not_cut(context: Context) -> None:
    single = await context.create_object_from_value(5)
    await single.insert(6)
    with pytest.raises(InputError, match="it holds 2 rows"):
        await single.data()
    assert await single.data(orient="records") == [{"value": 5}, {"value": 6}]


async def test_truths_are_known_from_the_types_of_columns(sales: Object) -> None:
    made = await sales.with_columns(large=col("price") > 2)
    assert await (~made["large"]).data() == [True, True, False, False]
    assert made.schema["large"].type == "Bool"


async def test_an_object_with_fewer_columns_leaves_none_and_one_with_more_is_refused(
    context: Context, sales: Object
) -> None:
    await sales.insert(sales[["city", "price", "paid"]].limit(1))
    assert await sales["pieces"].data() == [3, None, 1, 2, None]
    assert await sales.insert([{"city": "Bern", "price": 1.0, "paid": True}]) == 1
    for frame in (sales[["city", "pieces"]], sales.with_columns(more=1)):
        with pytest.raises(InputError, match=r"missing: .*unexpected: "):
            await sales.insert(frame)
    assert await sales.count() == 6
