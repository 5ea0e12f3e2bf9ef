"""The verbs of frames: choosing, joining, exploding, renaming."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.data import Context, Object, col, concat
from aaiclick.data.frames import Query
from aaiclick.data.verbs.operands import check_count
from aaiclick.errors import DataRefused, InputError


async def test_one_name_chooses_a_list_and_several_a_table(sales: Object) -> None:
    computed = sales.with_columns(double=col("price") * 2)
    assert await computed["double"].data() == [3.0, 4.0, 5.0, 8.0]
    assert await computed[["double", "city"]].limit(1).data() == {"double": [3.0], "city": ["Rome"]}
    record = sales.agg(total=("price", "sum"), n="count")
    assert await record["total"].data() == 10.0
    assert await record[["n"]].data() == {"n": 4}


@pytest.mark.parametrize("chosen", [0, [], ["city", "city"], ["cities"], "cities", None, {"city"}])
def test_what_is_no_column_is_refused(sales: Object, chosen: object) -> None:
    for frame in (sales, sales.with_columns(x=1)):
        with pytest.raises(InputError, match="column"):
            frame[chosen]  # type: ignore[index]


def test_a_mask_is_no_column_but_the_hint_tells_where_to_go(sales: Object) -> None:
    with pytest.raises(InputError, match="Use where"):
        sales[sales["price"] > 1]  # type: ignore[index]


def test_rows_are_not_given_one_by_one(sales: Object) -> None:
    with pytest.raises(TypeError, match="not iterable"):
        list(sales)  # type: ignore[call-overload]


async def test_limits_and_offsets_follow_each_other(numbers: Object) -> None:
    doubled = numbers * 2
    assert await doubled.limit(2, 1).data() == [4, 6]
    assert await doubled.offset(1).limit(2).offset(1).data() == [6]
    assert await doubled.limit(0).data() == []
    assert await doubled.offset(10).data() == []
    assert await doubled.limit(3).where(col("value") > 4).data() == [6]


@pytest.mark.parametrize("count", [-1, 1.5, "1", None, True, 2**63])
def test_a_number_of_rows_is_checked(count: object) -> None:
    with pytest.raises(InputError, match="a whole number"):
        check_count(count, "limit")


async def test_unique_keeps_one_of_each(sales: Object) -> None:
    assert await sales[["city"]].unique().count() == 2
    assert await sales.unique("city").count() == 2
    assert await sales.unique("city").order_by("city")["city"].data() == ["Oslo", "Rome"]
    with pytest.raises(InputError, match="towns"):
        sales.unique("towns")


async def test_explode_gives_a_row_for_each_element(context: Context) -> None:
    given = await context.create_object_from_value({"k": [1, 2, 3], "xs": [["a", "b"], [], ["c"]]})
    assert await given.explode("xs").data() == {"k": [1, 1, 3], "xs": ["a", "b", "c"]}


async def test_renaming_is_checked(sales: Object) -> None:
    assert sales.rename({"city": "town"}).columns == ("town", "price", "pieces", "paid")
    for names in ({"city": "price"}, {"city": ""}, {"town": "city"}, {"city": "aai_id"}):
        with pytest.raises(InputError):
            sales.rename(names)


async def test_a_new_column_may_have_any_name_even_self(sales: Object) -> None:
    found = sales[["price"]].with_columns(self=1, columns=2)
    assert found.columns == ("price", "self", "columns")
    assert await found.agg(self=("self", "sum")).data() == {"self": 4}


async def test_totals_are_methods(numbers: Object, sales: Object) -> None:
    assert [await getattr(numbers, name)().data() for name in ("sum", "min", "max", "mean", "median")] == [
        10,
        1,
        4,
        2.5,
        2.5,
    ]
    assert await sales[["price", "pieces"]].max().data() == {"price": 4.0, "pieces": 3}
    with pytest.raises(AttributeError):
        _ = numbers.summ  # type: ignore[attr-defined]


@pytest.fixture
async def towns(context: Context) -> Object:
    return await context.create_object_from_value(
        {"city": ["Rome", "Bern"], "people": [2_800, 130], "price": [1, 2], "capital": [True, True]}
    )


async def test_joins_of_every_kind(sales: Object, towns: Object) -> None:
    counts = {how: await sales.join(towns, on="city", how=how).count() for how in ("inner", "left", "right", "full")}
    assert counts == {"inner": 2, "left": 4, "right": 3, "full": 5}
    assert await sales.join(towns, on="city", how="semi").count() == 2
    assert await sales.join(towns, on="city", how="anti")["city"].unique().data() == ["Oslo"]
    assert await sales.join(towns, how="cross").count() == 8


async def test_a_row_without_a_partner_has_none_beside_it(sales: Object, towns: Object) -> None:
    found = sales[["city", "paid"]].join(towns, on="city", how="full").order_by("city", "paid")
    assert await found.data() == {
        "city": ["Bern", "Oslo", "Oslo", "Rome", "Rome"],
        "paid": [None, False, True, True, True],
        "people": [130, None, None, 2_800, 2_800],
        "price": [2, None, None, 1, 1],
        "capital": [True, None, None, True, True],
    }
    right = sales[["city", "paid"]].join(towns[["city", "people"]], on="city", how="right").order_by("city", "people")
    assert await right["city"].data() == ["Bern", "Rome", "Rome"]


async def test_equal_names_get_a_suffix(sales: Object, towns: Object) -> None:
    joined = sales.join(towns, on="city", suffix="_town")
    assert joined.columns == ("city", "price", "pieces", "paid", "people", "price_town", "capital")
    with pytest.raises(InputError, match="Choose another suffix"):
        sales.with_columns(price_town=1).join(towns, on="city", suffix="_town")


async def test_truths_stay_truths_through_joins(sales: Object, towns: Object) -> None:
    joined = sales.join(towns, on="city", how="left")
    assert await (~joined["capital"]).order_by("capital").data() == [False, False, None, None]


async def test_keys_may_have_different_names(sales: Object, towns: Object) -> None:
    joined = sales.join(towns.rename({"city": "town"})[["town", "people"]], on={"city": "town"})
    assert joined.columns == ("city", "price", "pieces", "paid", "people")
    assert await joined["people"].data() == [2_800, 2_800]


async def test_an_object_may_be_joined_with_itself(numbers: Object) -> None:
    table = numbers.with_columns(next=col("value") + 1)
    joined = table.join(table, on={"next": "value"})
    assert await joined.order_by("value").data() == {"value": [1, 2, 3], "next": [2, 3, 4], "next_right": [3, 4, 5]}


def test_joins_are_checked(sales: Object, towns: Object) -> None:
    how: Any
    on: Any
    for how, on in (("outer", "city"), ("inner", None), ("cross", "city"), ("inner", "people"), ("inner", [])):
        with pytest.raises(InputError):
            sales.join(towns, on=on, how=how)


async def test_concat_needs_the_same_columns(context: Context, sales: Object, numbers: Object) -> None:
    turned = sales[["price", "city"]]
    assert await concat(sales[["city", "price"]], turned).count() == 8
    assert await concat(sales[["city", "price"]], turned).order_by("price").limit(2)["city"].data() == ["Rome", "Rome"]
    single = await context.create_object_from_value(5)
    assert sorted(await concat(numbers, single).data()) == [1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="the first has the columns"):
        concat(sales, turned)


async def test_mixed_types_in_one_column_are_refused(sales: Object) -> None:
    with pytest.raises(DataRefused, match="supertype"):
        await sales["paid"].choose(sales["price"], "free").data()


async def test_wide_tables_work(context: Context) -> None:
    wide = await context.create_object_from_value({f"column_number_{number}": [number] for number in range(2_000)})
    found = await (wide + 1).data()
    assert list(found.values()) == [[number + 1] for number in range(2_000)]


async def test_long_lists_and_texts_may_stand_in_a_query(numbers: Object) -> None:
    assert await numbers.isin(range(2, 100_000)).data() == [False, True, True, True]
    assert await numbers.cast(str).join_with("x" * 1_000_000).length().max().data() == 1_000_001


async def test_large_numbers_stay_exact(numbers: Object) -> None:
    assert await (numbers + 2**70).limit(1).data() == [2**70 + 1]


def test_a_query_has_not_run(numbers: Object) -> None:
    assert isinstance(numbers + 1, Query)
    assert repr(numbers + 1) == "<Query list: value>"
