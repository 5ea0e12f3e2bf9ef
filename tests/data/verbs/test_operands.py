"""Conditions, sorting keys and new columns, made of whatever people give."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, Frame, Object, col, row_number
from aaiclick.data.query.expressions import Column, One, Raw
from aaiclick.data.verbs.operands import bind, check_columns, new_name, settle, single, sorting
from aaiclick.errors import InputError, NotAligned


async def test_a_table_and_a_list_meet_column_by_column(context: Context) -> None:
    table = await context.create_object_from_value({"a": [1, 2], "b": [3, 4]})
    assert await (table + table["a"]).data() == {"a": [2, 4], "b": [4, 6]}
    assert await (table * table).data() == {"a": [1, 4], "b": [9, 16]}
    with pytest.raises(InputError, match="it has no column 'a'"):
        _ = table["a"] + table.rename({"a": "c"})


async def test_conditions_may_be_of_every_kind_at_once(sales: Object) -> None:
    computed = sales.with_columns(total=col("price") * col("pieces"))
    found = computed.where(computed["total"] > 3, col("paid"), "city = 'Oslo'")
    assert await found["total"].data() == [8.0]
    assert found.columns == computed.columns


async def test_a_condition_of_other_rows_is_refused(sales: Object, numbers: Object) -> None:
    with pytest.raises(NotAligned):
        sales.where(numbers > 1)


async def test_columns_of_all_rows_may_be_used_on_some_of_them(sales: Object) -> None:
    """What is computed row by row is the same for each row, whichever others there are."""
    dear = sales.where("price > 1")
    doubled = dear.with_columns(twice=sales["price"] * 2)
    assert await doubled["twice"].data() == [2 * price for price in await dear["price"].data()]
    first = sales.order_by("price", descending=True).limit(2)
    assert await first.where(sales["price"] > 0)["price"].data() == await first["price"].data()
    assert await first.order_by(-sales["price"])["price"].data() == await first["price"].data()
    assert "WHERE" in doubled.explain()
    totals = sales.group_by("city").sum("pieces")
    with pytest.raises(NotAligned):
        totals.with_columns(x=sales["price"])
    with pytest.raises(NotAligned):
        _ = dear["price"] + sales["price"]


async def test_filtering_comes_after_windows(numbers: Object) -> None:
    counted = numbers.with_columns(n=row_number().over(order_by="value"))
    assert await counted.where(counted["value"] > 2).data() == {"value": [3, 4], "n": [3, 4]}
    assert await counted.where(counted["n"] > 2).data() == {"value": [3, 4], "n": [3, 4]}
    assert await numbers.where(col("value") > col("value").mean().over()).data() == [3, 4]


async def test_sorting_keys_may_be_of_every_kind(sales: Object) -> None:
    computed = sales.with_columns(total=col("price") * col("pieces"))
    by_frame = computed.order_by(computed["total"], descending=True)
    assert await by_frame["total"].data() == [8.0, 4.5, 2.5, None]
    assert await computed.order_by(-col("price"))["price"].data() == [4.0, 2.5, 2.0, 1.5]
    assert await sales.order_by("city", "price", descending=[False, True])["price"].data() == [4.0, 2.0, 2.5, 1.5]
    assert await sales.order_by("length(city), price DESC").limit(1)["price"].data() == [4.0]
    with pytest.raises(InputError, match="it must be one value, or one for each key"):
        sales.order_by("city", "price", descending=[True])


async def test_none_comes_last_whichever_way_it_is_sorted(sales: Object) -> None:
    assert await sales.order_by("pieces")["pieces"].data() == [1, 2, 3, None]
    assert await sales.order_by("pieces", descending=True)["pieces"].data() == [3, 2, 1, None]


async def test_new_columns_may_be_of_every_kind(sales: Object) -> None:
    computed = sales[["price"]].with_columns(double=col("price") * 2)
    found = computed.with_columns(a=computed["double"] + 1, b=col("double") + 2, c=3, d=computed["double"].max())
    assert await found.limit(1).data() == {
        "price": [1.5],
        "double": [3.0],
        "a": [4.0],
        "b": [5.0],
        "c": [3],
        "d": [8.0],
    }


async def test_a_new_column_of_other_rows_is_refused(sales: Object, numbers: Object) -> None:
    with pytest.raises(NotAligned, match="the new column"):
        sales.with_columns(x=numbers)
    with pytest.raises(InputError, match="one column"):
        sales.with_columns(x=sales)


def test_reserved_and_unusable_names_are_refused() -> None:
    assert new_name("a b") == "a b"
    for name in ("aai_id", "", "a\x00", "x" * 300):
        with pytest.raises(InputError, match="column"):
            new_name(name)
    with pytest.raises(InputError, match="the columns are a, b"):
        check_columns(["a", "b"], ["a", "c"])


async def test_what_is_given_is_bound_to_its_rows(sales: Object) -> None:
    assert bind(sales, sales["price"]).base is sales._relation
    assert bind(sales, col("price")).base is None
    assert isinstance(bind(sales, "price > 1", as_sql=True).value, Raw)
    assert isinstance(bind(sales, sales["price"].max()).value, One)
    assert isinstance(sorting(sales, (), False).bound[0].value, Column)


async def test_values_are_settled_over_the_rows_of_a_frame(sales: Object) -> None:
    computed = sales[["price"]].with_columns(double=col("price") * 2)
    bound = [bind(computed, computed["double"]), bind(computed, col("price"))]
    relation, values = settle(computed, bound)
    assert relation.names[:2] == ("price", "double")
    assert len(relation.names) == 3
    assert len(values) == 2


async def test_constants_of_constants_are_no_queries_inside_queries(context: Context) -> None:
    value = await context.create_object_from_value(2)
    total: Frame = value
    for _ in range(200):
        total = total + (value > 0).choose(1, 0)
    assert await total.data() == 202
    assert await (value * 3 + value * 4).data() == 14
    assert not isinstance(single(value * 3), One)
