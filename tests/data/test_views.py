"""Views: what folds, what travels, and what does not."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any, cast

import pytest

from aaiclick.data import Context, Frame, Object, View, col
from aaiclick.data.views import Window, table_in, window_in
from aaiclick.errors import InputError, ObjectNotFound


def test_what_narrows_gives_a_view(sales: Object) -> None:
    seen = sales.where("price > 1").order_by("price").limit(3)[["city", "price"]]
    assert isinstance(seen, View)
    assert seen.explain() == f"SELECT `city`, `price` FROM `{sales.table}` WHERE (price > 1) ORDER BY `price` LIMIT 3"


async def test_a_view_is_read_only(sales: Object) -> None:
    assert not hasattr(sales.where("1"), "insert")


async def test_limits_and_offsets_are_counted_within_the_view(numbers: Object) -> None:
    assert await numbers.limit(3).offset(1).data() == [2, 3]
    assert await numbers.offset(1).limit(2).limit(5, 1).data() == [3]
    assert await numbers.limit(2).limit(10).data() == [1, 2]
    assert await numbers.limit(2, 1).offset(5).data() == []
    assert await numbers.limit(0).data() == []


async def test_a_condition_after_a_cut_is_about_what_is_left(numbers: Object) -> None:
    cut = numbers.order_by("value", descending=True).limit(2)
    assert not isinstance(cut.where("value < 4"), View)
    assert await cut.where("value < 4").data() == [3]
    assert await cut.order_by("value").data() == [3, 4]
    assert await cut.order_by("value").limit(1).data() == [3]


async def test_columns_of_a_view_are_conditions_of_it(sales: Object) -> None:
    seen = sales.where("price > 1.5")
    assert await seen.where(seen["pieces"] > 1)["city"].data() == ["Oslo"]
    assert await seen.where(sales["pieces"] > 1)["city"].data() == ["Oslo"]
    assert await seen[["city"]].where(seen["pieces"] > 1).data() == {"city": ["Oslo"]}
    cut = seen.order_by("price").limit(2)
    assert await cut.where(cut["price"] > 2)["price"].data() == [2.5]
    assert await cut.order_by(cut["price"], descending=True)["price"].data() == [2.5, 2.0]


async def test_hidden_columns_may_still_be_sorted_and_asked_for(sales: Object) -> None:
    assert await sales["city"].order_by("price DESC").limit(1).data() == ["Oslo"]
    assert await sales[["city"]].where("price < 2").data() == {"city": ["Rome"]}


async def test_a_view_in_one_go(sales: Object) -> None:
    seen = sales.view(where="paid", order_by="price", limit=1, offset=1, selected_fields=["price"])
    assert await seen.data() == {"price": [2.5]}
    assert await sales.view(offset=3)["price"].data() == [4.0]
    assert await sales.view().count() == 4


def narrowed(sales: Object) -> dict[str, Frame]:
    return {
        "where": sales.where(col("city") == "Ro`m'e\\", "price > 1"),
        "isin": sales.where(col("city").isin(["Rome"]) & ~col("paid").fill_null(True)),
        "order": sales.order_by("price", descending=True).limit(2),
        "orders": sales.order_by("paid", "price", descending=[False, True]),
        "sql order": sales.order_by("length(city), price DESC"),
        "term order": sales.order_by(-col("price")),
        "fields": sales[["price", "city"]].offset(1),
        "one": sales["price"].limit(2),
        "nothing": sales.limit(0),
    }


@pytest.mark.parametrize(
    "kind", ["where", "isin", "order", "orders", "sql order", "term order", "fields", "one", "nothing"]
)
async def test_a_view_travels_as_json(context: Context, sales: Object, kind: str) -> None:
    seen = narrowed(sales)[kind]
    assert isinstance(seen, View)
    reference = json.loads(json.dumps(seen.reference()))
    opened = await context.open_reference(reference)
    assert await opened.data() == await seen.data()
    assert await (await context.open_reference(opened.reference())).data() == await seen.data()


async def test_an_object_travels_by_its_table(context: Context, sales: Object) -> None:
    assert sales.reference() == {"object_type": "object", "table": sales.table}
    opened = await context.open_reference({"object_type": "object", "table_id": sales.table_id})
    assert await opened.data() == await sales.data()


async def test_a_column_and_a_table_of_one_column_arrive_as_they_left(context: Context, sales: Object) -> None:
    for seen in (sales["price"], sales[["price"]], sales[["price", "city"]], sales[["price"]].where("price > 1")):
        assert isinstance(seen, View)
        opened = await context.open_reference(seen.reference())
        assert (opened.shape, await opened.data()) == (seen.shape, await seen.data())
    assert "shape" not in sales["price"].reference()


async def test_a_view_that_looks_elsewhere_does_not_travel(sales: Object) -> None:
    for seen in (sales.where(col("price") > sales["price"].mean()), sales.where(col("city").isin(sales["city"]))):
        assert isinstance(seen, View)
        with pytest.raises(InputError, match="Await it first"):
            seen.reference()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"table": ""},
        {"table": 5},
        {"table": "t", "limit": -1},
        {"table": "t", "limit": "5"},
        {"table": "t", "offset": 1.5},
        {"table": "t", "selected_fields": ["b"]},
    ],
)
def test_a_wrong_reference_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        _ = table_in(wrong), window_in(wrong, ["a"])


def test_an_empty_reference_shows_everything() -> None:
    assert window_in({"table": "t"}, ["a"]) == Window()


async def test_a_table_that_is_gone_is_not_found(context: Context) -> None:
    with pytest.raises(ObjectNotFound):
        await context.open_reference({"object_type": "object", "table": "c0_1"})


async def test_the_first_rows_of_an_ordered_object_are_the_first_in_its_order(context: Context) -> None:
    ordered = await context.create_object_from_value([3, 1], order=True)
    await ordered.insert([2])
    assert await ordered.limit(2).data() == [3, 1]
    assert await ordered.offset(1).data() == [1, 2]
    assert await ordered.where("value > 1").limit(1, 1).data() == [2]
    assert await (ordered * 2).limit(2).data() == [6, 2]


async def test_what_is_referred_to_lives_as_long_as_its_context(context: Context) -> None:
    reference = cast("View", (await context.create_object_from_value([1, 2])).where("value > 1")).reference()
    gc.collect()
    await asyncio.sleep(0.1)
    assert await (await context.open_reference(reference)).data() == [2]
