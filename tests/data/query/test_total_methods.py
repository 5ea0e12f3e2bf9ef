"""Totals that can be asked for in more than one way."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from aaiclick.data import Context, Object, col
from aaiclick.data.provenance.column_sources import ColumnSource, trace
from aaiclick.errors import DataRefused, InputError


async def test_a_total_of_some_rows_is_asked_for_by_where(sales: Object) -> None:
    assert await sales["price"].sum(where=sales["paid"]).data() == 8.0
    assert await sales["price"].sum(where="pieces > 1").data() == 5.5
    found = sales.group_by("city").agg(
        dear=col("price").max(where=col("paid")),
        n=col("price").count(where=col("pieces") > 1),
        none=col("price").min(where=col("price") > 100),
        every=col("paid").all(where=col("price") > 2),
    )
    assert await found.order_by("city").data() == {
        "city": ["Oslo", "Rome"],
        "dear": [4.0, 2.5],
        "n": [1, 1],
        "none": [None, None],
        "every": [True, True],
    }
    assert await sales.group_by("city").count("n", where=~col("paid")).order_by("city")["n"].data() == [1, 0]
    assert await sales.group_by("city").sum("price", where=col("paid")).order_by("city")["price"].data() == [4.0, 4.0]


async def test_every_total_takes_where(sales: Object) -> None:
    names = ("sum", "mean", "min", "max", "std", "var", "skew", "kurt", "median", "mode", "product", "nunique")
    more = ("approx_nunique", "count", "any", "all", "first", "collect")
    some = sales.where(col("paid"))
    for name in (*names, *more):
        asked = getattr(col("price"), name)(where=col("paid"))
        found, plain = await sales.agg(v=asked).data(), await some.agg(v=getattr(col("price"), name)()).data()
        assert repr(found) == repr(plain), name


async def test_checked_sums_of_some_rows_are_refused_too(context: Context) -> None:
    made = await context.create_object_from_value({"x": [2**63 - 1, 1, 5], "k": [1, 1, 2]})
    assert await made["x"].sum(where=made["k"] == 2).data() == 5
    with pytest.raises(DataRefused, match="a total is beyond the range"):
        await made["x"].sum(where=made["k"] == 1).data()
    assert await made["x"].sum(where=made["k"] == 1).wrapping().data() == -(2**63)


async def test_degrees_of_freedom_are_stated(sales: Object) -> None:
    assert await sales["pieces"].var().data() == 1.0
    assert await sales["pieces"].var(ddof=0).data() == pytest.approx(2 / 3)
    assert await sales.group_by("city").std("price", ddof=0).order_by("city")["price"].data() == [1.0, 0.5]
    assert math.isnan(await sales.limit(1)["price"].std().data())
    with pytest.raises(InputError, match="1 for a sample"):
        sales["price"].std(ddof=2)  # type: ignore[arg-type]


async def test_skewness_and_kurtosis_far_from_zero_are_those_near_it(context: Context) -> None:
    near, far = [1.0, 2.0, 3.0, 7.0], [1e9 + value for value in (1.0, 2.0, 3.0, 7.0)]
    for values in (near, far):
        made = await context.create_object_from_value(values)
        assert await made.skew().data() == pytest.approx(0.8331504)
        assert await made.skew(bias=False).data() == pytest.approx(1.4430588)
        assert await made.kurt().data() == pytest.approx(-0.9020177)
        assert await made.kurt(bias=False).data() == pytest.approx(2.2348672)


async def test_first_and_last_are_those_of_an_order(sales: Object) -> None:
    found = sales.group_by("city").agg(
        first=col("pieces").first(order_by="price"),
        last=col("price").last(order_by=["paid", "pieces"]),
        most=col("price").argmax("pieces"),
        least=col("price").argmin(col("price") * -1),
    )
    assert await found.order_by("city").data() == {
        "city": ["Oslo", "Rome"],
        "first": [2, 3],
        "last": [4.0, 1.5],
        "most": [4.0, 1.5],
        "least": [4.0, 2.5],
    }
    assert await sales.group_by("city").last("price", order_by="price").order_by("city")["price"].data() == [4.0, 2.5]
    with pytest.raises(InputError, match="the last value needs an order"):
        sales["price"].last(order_by=())


async def test_what_is_collected_may_be_sorted_cut_and_without_repetition(sales: Object) -> None:
    found = sales.agg(
        by_price=col("pieces").collect(order_by="price", descending=True),
        cities=col("city").collect(distinct=True, descending=True),
        two=col("price").collect(order_by=["city", "price"], limit=2),
    )
    assert await found.data() == {"by_price": [2, 1, 3], "cities": ["Rome", "Oslo"], "two": [2.0, 4.0]}
    with pytest.raises(InputError, match="one of both"):
        sales["price"].collect(order_by="price", distinct=True)


async def test_totals_of_times_and_decimals_are_theirs(context: Context) -> None:
    days, times = (
        [date(2024, 1, 1), date(2024, 1, 3)],
        [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 3, tzinfo=UTC)],
    )
    prices = [Decimal("1.25"), Decimal("2.50")]
    made = await context.create_object_from_value(
        {"d": days, "t": times, "m": prices}, fields={"d": "Date", "t": "DateTime64(6, 'UTC')", "m": "Decimal(9, 2)"}
    )
    assert await made["d"].mean().data() == date(2024, 1, 2)
    assert await made["t"].mean().data() == datetime(2024, 1, 2, tzinfo=UTC)
    assert await made.where(col("m") > 9)["t"].mean().data() is None
    assert await made.where(col("m") > 9)["d"].mean().data() is None
    assert await made["m"].median().data() == 1.875
    assert await made["t"].mode().data() == times[0]
    for name in ("std", "median", "product", "skew"):
        with pytest.raises(InputError, match="it needs numbers"):
            getattr(made["t"], name)()


async def test_of_texts_it_is_not_asked_whether_any_is_true(sales: Object) -> None:
    with pytest.raises(InputError, match=r"Use first\(\)"):
        sales["city"].any()


@pytest.mark.parametrize("place", [2, -0.1, "0.5", True, [], None])
def test_places_of_quantiles_are_checked(place: Any, sales: Object) -> None:
    with pytest.raises(InputError, match="quantile"):
        sales["price"].quantile(place)


async def test_types_of_totals_are_known_before_they_run(sales: Object) -> None:
    known = sales.agg(
        std=col("pieces").std(),
        mode=col("city").mode(),
        product=col("pieces").product(),
        several=col("price").quantile([0.5]),
        listed=col("pieces").collect(order_by="price"),
        first=col("price").first(order_by="city"),
        n=col("city").approx_nunique(where=col("paid")),
    )
    told = {name: str(value.kind) for name, value in known._relation.columns.items()}  # type: ignore[union-attr]
    assert told == {
        "std": "Nullable(Float64)",
        "mode": "Nullable(String)",
        "product": "Int64",
        "several": "Array(Float64)",
        "listed": "Array(Int64)",
        "first": "Nullable(Float64)",
        "n": "UInt64",
    }
    types = known.schema.types
    assert {name: types[name] for name in told if name not in ("std",)} == {k: v for k, v in told.items() if k != "std"}


async def test_lineage_knows_what_a_total_is_made_of_and_what_only_decides(sales: Object) -> None:
    query = sales.agg(
        v=col("price").sum(where=col("paid")),
        f=col("pieces").first(order_by="price"),
        s=col("price").sum(where=col("price") > 2),
    )
    found = trace(query._relation).columns
    table = sales.table
    assert found["v"] == {ColumnSource(table, "price", "AGGREGATION"), ColumnSource(table, "paid", "CONDITIONAL")}
    assert found["f"] == {ColumnSource(table, "pieces", "AGGREGATION"), ColumnSource(table, "price", "CONDITIONAL")}
    assert ColumnSource(table, "price", "AGGREGATION") in found["s"]


async def test_a_total_of_one_frame_may_look_at_columns_of_the_same(sales: Object) -> None:
    assert await sales["price"].argmax(sales["pieces"]).data() == 1.5
    assert await sales["price"].first(order_by=sales["city"].upper()).data() in (2.0, 4.0)
    with pytest.raises(InputError, match="the columns are price"):
        sales["price"].argmax("pieces")


def test_names_of_other_libraries_are_hinted(sales: Object) -> None:
    column, groups = sales["price"], sales.group_by("city")
    for asked, name, told in (
        (column, "prod", r"product\(\)"),
        (column, "rolling_mean", "rolling"),
        (column, "cumsum", "computes over several rows"),
        (groups, "idxmax", "argmax"),
        (groups, "shift", "computes over several rows"),
        (groups, "cumcount", "row_number"),
        (groups, "any_value", r"first\(\)"),
        (groups, "window_funnel", "a term"),
    ):
        with pytest.raises(AttributeError, match=told):
            getattr(asked, name)
    with pytest.raises(InputError, match=r"col\('x'\).last"):
        sales.group_by("city").agg(v=("price", "last"))
