"""Rows of columns and columns of rows: explode, unpivot, pivot."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import polars as pl
import pytest

from aaiclick.data import Context, Object, col
from aaiclick.errors import DataRefused, InputError


async def test_lists_of_several_columns_become_rows_together(context: Context) -> None:
    given = {"k": [1, 2, 3], "xs": [["a", None], [], ["c"]], "y s": [[1, 2], [], [3]]}
    frame = await context.create_object_from_value(given)
    assert await frame.explode("xs", "y s").data() == {"k": [1, 1, 3], "xs": ["a", None, "c"], "y s": [1, 2, 3]}
    kept = await frame.explode("xs", "y s", keep_empty=True).data()
    assert kept == {"k": [1, 1, 2, 3], "xs": ["a", None, None, "c"], "y s": [1, 2, None, 3]}
    assert await frame.explode("y s", keep_empty=True)["y s"].data() == [1, 2, None, 3]
    for columns in ((), ("xs", "xs"), ("nope",)):
        with pytest.raises(InputError):
            frame.explode(*columns)


async def test_lists_of_different_lengths_are_refused(context: Context) -> None:
    for xs, ys in (([1, 2], ["a"]), ([], ["a"])):
        frame = await context.create_object_from_value({"xs": [[1], xs], "ys": [["z"], ys]})
        for keep_empty in (False, True):
            with pytest.raises(DataRefused, match="Sizes"):
                await frame.explode("xs", "ys", keep_empty=keep_empty).data()


async def test_columns_become_rows(context: Context) -> None:
    given = {"id": [1, 2], "a.b": [1, None], "c'd": [3, 4]}
    frame = await context.create_object_from_value(given)
    found = frame.unpivot(index="id").order_by("variable", "id")
    wanted = pl.DataFrame(given).unpivot(index="id").sort("variable", "id")
    assert await found.data() == wanted.to_dict(as_series=False)
    some = frame.unpivot("c'd", index=["id"], variable="what", value="v").order_by("v")
    assert await some.data() == {"id": [1, 2], "what": ["c'd", "c'd"], "v": [3, 4]}
    assert await frame.where("0").unpivot().count() == 0
    assert (await frame.unpivot(index="id").count(), await frame.unpivot().count()) == (4, 6)
    assert await frame.unpivot(index="id").drop_nulls().count() == 3


async def test_columns_that_have_no_type_in_common_are_refused(context: Context, sales: Object) -> None:
    with pytest.raises(DataRefused, match="supertype"):
        await sales.unpivot(["city", "price"]).data()
    naive, aware = datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)  # noqa: DTZ001 (without a zone on purpose)
    times = await context.create_object_from_value({"a": [naive], "b": [aware]})
    with pytest.raises(InputError, match="zone"):
        times.unpivot()
    truths = sales.unpivot("paid", index="price")
    assert await truths.order_by("price")["value"].data() == [True, False, True, True]


def test_what_cannot_be_unpivoted_is_refused(sales: Object) -> None:
    given: Any
    for given in (
        {"on": "nope"},
        {"index": "nope"},
        {"index": ["city"], "variable": "city"},
        {"variable": "v", "value": "v"},
        {"index": ["city", "price", "pieces", "paid"]},
        {"on": ["price", "price"]},
    ):
        with pytest.raises(InputError):
            sales.unpivot(**given)


GIVEN = {
    "day": [1, 1, 2, 2, 3, 3],
    "city": ["Rome", "Oslo", "Rome", "Rome", None, "É ü"],
    "n": [1, 2, 3, None, 5, 6],
}


@pytest.mark.parametrize("total", ["max", "mean", "min"])
async def test_rows_become_columns_with_totals(context: Context, total: Any) -> None:
    frame = await context.create_object_from_value(GIVEN)
    found = (await frame.pivot("city", index="day", values="n", total=total)).order_by("day")
    assert found.columns == ("day", "Oslo", "Rome", "É ü", "None")
    wanted = pl.DataFrame(GIVEN).pivot("city", index="day", values="n", aggregate_function=total).sort("day")
    named = wanted.rename({"null": "None"}).to_dict(as_series=False)
    assert await found.data() == {name: named[name] for name in found.columns}


async def test_a_cell_of_two_rows_needs_a_total(context: Context) -> None:
    frame = await context.create_object_from_value(GIVEN)
    with pytest.raises(DataRefused, match="give a total"):
        await (await frame.pivot("city", index="day", values="n")).data()
    single = await frame.where(col("n").not_null()).pivot("city", index="day", values="n")
    assert await single.order_by("day").data() == {
        "day": [1, 2, 3],
        "Oslo": [2, None, None],
        "Rome": [1, 3, None],
        "É ü": [None, None, 6],
        "None": [None, None, 5],
    }
    some = await frame.pivot("city", index=["day"], values="n", total="count", among=["Rome", "Nowhere"])
    assert await some.order_by("day").data() == {"day": [1, 2, 3], "Rome": [1, 1, None], "Nowhere": [None] * 3}
    sums = await frame.pivot("city", index="day", values="n", total="sum", among=["Rome"])
    assert await sums.order_by("day")["Rome"].data() == [1, 3, None]
    lists = await frame.pivot("day", index="city", values="n", total="collect", among=[1])
    assert await lists.order_by("city")["1"].data() == [[2], [1], [], []]


async def test_columns_are_called_after_values_of_any_type(context: Context) -> None:
    frame = await context.create_object_from_value(
        {"d": [date(2024, 1, 2), date(2024, 1, 1)], "ok": [True, False], "f": [0.5, math.nan], "k": ["x", "y"]}
    )
    found = await frame.pivot("d", index="k", values="ok")
    assert await found.order_by("k").data() == {
        "k": ["x", "y"],
        "2024-01-01": [None, False],
        "2024-01-02": [True, None],
    }
    assert (await frame.pivot("ok", index="k", values="f", total="max")).columns == ("k", "False", "True")
    given: Any
    for given in (
        {"on": "f", "index": "k", "values": "ok"},
        {"on": "nope", "index": "k", "values": "ok"},
        {"on": "ok", "index": "k", "values": "f", "total": "summ"},
        {"on": "ok", "index": "k", "values": "f", "total": "quantile"},
        {"on": "ok", "index": "k", "values": "f", "among": ["k"]},
        {"on": "ok", "index": "k", "values": "f", "among": []},
    ):
        with pytest.raises(InputError):
            await frame.pivot(**given)


async def test_so_many_columns_are_refused(context: Context) -> None:
    frame = await context.create_object_from_value({"k": list(range(1_001))})
    with pytest.raises(InputError, match="more than 1000"):
        await frame.pivot("k", index="k", values="k")
