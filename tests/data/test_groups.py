"""Groups and their totals."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.data import Object, col, row_number
from aaiclick.errors import InputError, NotAligned


async def test_a_row_for_each_distinct_value(sales: Object) -> None:
    assert await sales.group_by("city").sum("price").order_by("city").data() == {
        "city": ["Oslo", "Rome"],
        "price": [6.0, 4.0],
    }
    assert await sales.group_by("city").count().order_by("city").data() == {"city": ["Oslo", "Rome"], "count": [2, 2]}
    assert await sales.group_by("city", "paid").count("n").order_by("n", "city", "paid").data() == {
        "city": ["Oslo", "Oslo", "Rome"],
        "paid": [False, True, True],
        "n": [1, 1, 2],
    }


async def test_totals_are_asked_for_in_every_way(sales: Object) -> None:
    found = sales.group_by("city").agg(
        {"price": ["min", "max"], "pieces": "sum"},
        price="mean",
        n="count",
        known=("pieces", "count"),
        most=(col("price") * 10).max() + 1,
    )
    assert await found.order_by("city").data(orient="records") == [
        {
            "city": "Oslo",
            "price_min": 2.0,
            "price_max": 4.0,
            "pieces": 2,
            "price": 3.0,
            "n": 2,
            "known": 1,
            "most": 41.0,
        },
        {
            "city": "Rome",
            "price_min": 1.5,
            "price_max": 2.5,
            "pieces": 4,
            "price": 2.0,
            "n": 2,
            "known": 2,
            "most": 26.0,
        },
    ]


async def test_a_total_may_have_the_name_of_its_column(sales: Object) -> None:
    totals = sales.group_by("city").agg(price=("price", "sum"), pieces=col("price").max())
    assert await totals.where(col("price") > 4).data() == {"city": ["Oslo"], "price": [6.0], "pieces": [4.0]}


async def test_all_other_columns_are_summed_up_if_none_is_named(sales: Object) -> None:
    assert sales[["city", "price", "pieces"]].group_by("city").max().columns == ("city", "price", "pieces")


async def test_keys_may_be_terms_columns_and_windows(sales: Object) -> None:
    by_term = sales.group_by(col("price") > 2, "city").count()
    assert by_term.columns == ("key0", "city", "count")
    assert await by_term.count() == 4
    computed = sales.with_columns(half=col("price") / 2)
    by_frame = computed.group_by(computed["half"] > 1).agg(n="count", t=col("half").sum())
    assert await by_frame.order_by("n").data() == {"half": [False, True], "n": [2, 2], "t": [1.75, 3.25]}
    parity = row_number().over(order_by="price") % 2
    assert await sales.group_by(parity).agg(t=("price", "sum")).order_by("t").data() == {
        "key0": [1, 0],
        "t": [4.0, 6.0],
    }


async def test_a_key_that_is_computed_may_have_a_name(sales: Object) -> None:
    found = sales.group_by("city", dear=col("price") > 2).having(col("n") > 0).agg(n="count")
    assert found.columns == ("city", "dear", "n")
    assert await sales.group_by(place="city").count().order_by("place")["place"].data() == ["Oslo", "Rome"]
    with pytest.raises(InputError, match="a key has this name already"):
        sales.group_by("city", city=col("price"))


def test_groups_are_asked_for_totals_by_name(sales: Object) -> None:
    groups: Any = sales.group_by("city")
    for ask in (lambda: groups["price"], lambda: groups.agg(col("price").sum())):
        with pytest.raises(InputError, match="agg"):
            ask()
    with pytest.raises(TypeError):
        list(groups)


async def test_none_is_a_group_too(sales: Object) -> None:
    assert await sales.group_by("pieces").count().order_by("pieces")["pieces"].data() == [1, 2, 3, None]


async def test_having_keeps_some_groups(sales: Object) -> None:
    groups = sales.group_by("city").agg(total=("price", "sum"))
    assert await groups.having("total > 5")["city"].data() == ["Oslo"]
    assert await groups.having(col("total") < 5)["city"].data() == ["Rome"]


async def test_having_may_come_before_the_totals(sales: Object) -> None:
    groups = sales.group_by("city").having(col("total") > 5).having("n = 2")
    assert await groups.agg(total=("price", "sum"), n="count")["city"].data() == ["Oslo"]
    assert await sales.group_by("city").having("price > 3").max("price")["city"].data() == ["Oslo"]
    assert await sales.group_by("city").having("count > 5").count().having("1").count() == 0
    with pytest.raises(InputError):
        sales.group_by("city").having(col("nope") > 5).agg(n="count")


async def test_the_first_rows_of_each_group(sales: Object) -> None:
    cheapest = sales.group_by("city").head(1, order_by="price").order_by("city")
    assert await cheapest.data() == {
        "city": ["Oslo", "Rome"],
        "price": [2.0, 1.5],
        "pieces": [None, 3],
        "paid": [False, True],
    }
    assert await sales.group_by("city").top(1, by=["price"]).order_by("city")["price"].data() == [4.0, 2.5]
    by_term = sales.group_by(col("price") > 2).head(1, order_by="price", descending=True).order_by("price")
    assert await by_term["price"].data() == [2.0, 4.0]
    assert await sales.group_by("pieces").head(1, order_by=col("price") * -1).count() == 4
    for groups in (sales.group_by(), sales.group_by("city").having("1")):
        with pytest.raises(InputError):
            groups.head(1, order_by="price")


async def test_totals_of_totals(sales: Object) -> None:
    per_city = sales.group_by("city").agg(total=("price", "sum"))
    assert await per_city.agg(most=("total", "max"), n="count").data() == {"most": 6.0, "n": 2}
    assert await per_city["total"].mean().data() == 5.0


async def test_groups_of_nothing(sales: Object) -> None:
    none = sales.where("price > 100")
    assert await none.group_by("city").count().data() == {"city": [], "count": []}
    assert await none.agg(n="count", t=("price", "sum"), m=("price", "max")).data() == {"n": 0, "t": 0.0, "m": None}


def test_what_cannot_be_computed_is_refused(sales: Object, numbers: Object) -> None:
    groups = sales.group_by("city")
    for wanted in ({"x": ("price", "summ")}, {"x": "sum"}, {"city": ("price", "sum")}, {"x": sales["price"].sum()}):
        with pytest.raises(InputError):
            groups.agg(**wanted)
    with pytest.raises(InputError):
        sales.group_by("town")
    with pytest.raises(InputError, match="name at least one total"):
        sales.agg()
    with pytest.raises(NotAligned):
        sales.group_by(numbers).count()
    with pytest.raises(AttributeError, match="summ"):
        _ = groups.summ  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="place"):
        groups.quantile("price")  # type: ignore[call-arg]
