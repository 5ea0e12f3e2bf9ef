"""Choosing columns and rows: select, drop, head, tail, sample, fill, top, deduplicate, or_where."""

from __future__ import annotations

import math
from typing import Any, Literal

import polars as pl
import pytest

from aaiclick.data import Context, Object, View, col, row_number
from aaiclick.errors import InputError, NotAligned

ODD = "a.b `c\"d' é"


@pytest.fixture
async def odd(context: Context) -> Object:
    """None, NaN, equal rows, and names that have to be quoted."""
    return await context.create_object_from_value(
        {
            "k": ["x", "y", "x", "y", "x", "x"],
            ODD: [3, None, 1, 2, 1, 1],
            "f": [1.5, math.nan, None, -0.0, 2.0, 2.0],
        }
    )


async def test_select_takes_names_terms_and_keywords(odd: Object) -> None:
    assert odd.select("f", ODD).columns == ("f", ODD)
    assert isinstance(odd.select(["k", "f"]), View)
    computed = odd.select("k", col(ODD), double=col(ODD) * 2, one=1).limit(2)
    assert await computed.data() == {"k": ["x", "y"], ODD: [3, None], "double": [6, None], "one": [1, 1]}
    query = odd.with_columns(g=col(ODD) + 1)
    assert await query.select(query["g"], h=query["g"] * 2).limit(1).data() == {"g": [4], "h": [8]}
    placed = query.select(ODD, n=row_number().over(order_by=ODD))
    assert await placed.order_by("n").limit(2).data() == {ODD: [1, 1], "n": [1, 2]}
    record = odd.agg(n="count", t=(ODD, "sum"))
    assert await record.select(m=col("n") * 2).data() == {"m": 12}


def test_what_cannot_be_selected_is_refused(odd: Object, numbers: Object) -> None:
    given: Any
    for given in ((), ("k", "k"), ("nope",), (col("nope"),), (col("f") * 2,), (5,)):
        with pytest.raises(InputError):
            odd.select(*given)
    with pytest.raises(InputError, match="each only once"):
        odd.select("k", k=1)
    with pytest.raises(InputError, match="Use agg"):
        odd.select(total=col("f").sum())
    with pytest.raises(InputError, match="Use agg"):
        odd[["f"]].with_columns(f=col("f").sum())
    with pytest.raises(InputError, match="reserved"):
        odd.select(aai_id=1)
    with pytest.raises(NotAligned):
        odd.select(other=numbers)


def test_drop_leaves_the_other_columns(odd: Object) -> None:
    assert odd.drop(ODD).columns == ("k", "f")
    assert odd.drop(["k", "f"]).columns == (ODD,)
    for given in (["nope"], ["k", ODD, "f"]):
        with pytest.raises(InputError):
            odd.drop(*given)


async def test_head_and_tail_are_the_first_and_last(odd: Object, context: Context) -> None:
    assert await odd.head(2)["k"].data() == ["x", "y"]
    assert await odd.head()["k"].count() == 5
    assert await odd.tail(2)[ODD].data() == [1, 1]
    assert await odd.order_by("f").tail(3)["f"].data() == pytest.approx([2.0, math.nan, None], nan_ok=True)
    assert await odd.tail(0).count() == 0
    assert await odd.tail(100).count() == 6
    assert await (await odd.order_by(ODD).tail(4)).head(2)[ODD].data() == [1, 2]
    assert await odd.where(col("k") == "y").tail(1)[ODD].data() == [2]
    assert await odd.tail(4).where(col("k") == "y")[ODD].data() == [2]
    assert await odd.tail(4).limit(1)[ODD].data() == [1]
    ordered = await context.create_object_from_value(list(range(100)), order=True)
    assert await ordered.tail(2).data() == [98, 99]
    assert await (await (ordered + 1).tail(2)).data() == [99, 100]
    for count in (-1, 1.5, None):
        with pytest.raises(InputError):
            odd.tail(count)  # type: ignore[arg-type]


async def test_none_and_nan_are_filled_where_it_is_asked(odd: Object) -> None:
    assert await odd[ODD].fill_null(0).data() == [3, 0, 1, 2, 1, 1]
    filled = await odd.fill_null({ODD: 0, "f": 9.5}).data()
    assert filled[ODD] == [3, 0, 1, 2, 1, 1]
    assert filled["f"] == pytest.approx([1.5, math.nan, 9.5, -0.0, 2.0, 2.0], nan_ok=True)
    assert await odd.fill_null(7, ODD)[ODD].data() == [3, 7, 1, 2, 1, 1]
    assert await odd.fill_nan(0.5, "f")["f"].data() == [1.5, 0.5, None, -0.0, 2.0, 2.0]
    assert await odd["f"].fill_nan(None).data() == [1.5, None, None, -0.0, 2.0, 2.0]
    assert await odd.select(g=col("f").fill_nan(col("f") * 2))["g"].limit(1).data() == [1.5]
    for given in ({"nope": 1}, 0):
        with pytest.raises(InputError):
            odd.fill_null(given, *(["nope"] if given == 0 else []))


async def test_rows_without_none(odd: Object) -> None:
    assert await odd.drop_nulls()[ODD].data() == [3, 2, 1, 1]
    assert await odd.drop_nulls(ODD).count() == 5
    assert await odd.drop_nulls("f").count() == 5  # NaN is a number
    with pytest.raises(InputError):
        odd.drop_nulls("nope")


async def test_a_sample_is_drawn_again_by_its_seed(context: Context, odd: Object) -> None:
    many = await context.create_object_from_value({"i": list(range(1_000)), "same": [1] * 1_000})
    first = await many.sample(10, seed=7)["i"].data()
    assert len(set(first)) == 10
    assert sorted(await many.sample(10, seed=7)["i"].data()) == sorted(first)
    assert sorted(await many.order_by("i", descending=True).sample(10, seed=7)["i"].data()) == sorted(first)
    assert sorted(await many.sample(10, seed=8)["i"].data()) != sorted(first)
    unseeded = many.sample(10)
    assert sorted(await unseeded["i"].data()) == sorted(await unseeded["i"].data())
    assert await many.sample(2_000, seed=1).count() == 1_000
    assert await many.sample(fraction=0.25, seed=1).count() == 250
    assert await odd.sample(fraction=0.5, seed=1).count() == 3
    assert [await odd.sample(fraction=part).count() for part in (0, 0.19, 1)] == [0, 1, 6]
    assert await odd.where("1 = 0").sample(3).count() == 0


async def test_equal_rows_are_drawn_one_by_one(context: Context) -> None:
    coins = await context.create_object_from_value([None, True] * 500)
    drawn = await coins.sample(100, seed=3).data()
    assert 25 < drawn.count(None) < 75


def test_what_is_no_sample_is_refused(odd: Object) -> None:
    given: Any
    for given in ({}, {"count": 1, "fraction": 0.5}, {"fraction": 1.5}, {"fraction": True}, {"count": -1}):
        with pytest.raises(InputError):
            odd.sample(**given)
    with pytest.raises(InputError, match="seed"):
        odd.sample(1, seed=-1)


async def test_the_greatest_of_all_and_of_each_group(odd: Object) -> None:
    assert await odd.top(2, "f", descending=False)["f"].data() == [-0.0, 1.5]
    best = odd.top(1, ODD, within="k").order_by("k")
    assert await best.data() == {"k": ["x", "y"], ODD: [3, 2], "f": [1.5, -0.0]}
    least = odd.top(2, by=[ODD, "f"], within=["k"], descending=False).order_by("k", ODD, "f")
    assert await least.select("k", ODD).data() == {"k": ["x", "x", "y", "y"], ODD: [1, 1, 2, None]}
    assert await odd.where("1 = 0").top(1, ODD, within="k").count() == 0
    for by, within in ((col("nope"), ()), (ODD, "nope")):
        with pytest.raises(InputError):
            odd.top(1, by, within=within)


async def test_deduplicating_keeps_the_first_or_last_in_an_order(odd: Object) -> None:
    given = {"k": ["x", "y", "x", "y", None, None], "t": [3, None, 1, 2, 5, 4]}
    expected = pl.DataFrame(given).sort("t", nulls_last=True)
    frame = await odd._context.create_object_from_value(given)
    keeps: tuple[Literal["first", "last"], ...] = ("first", "last")
    for keep in keeps:
        found = frame.deduplicate("k", order_by="t", keep=keep).order_by("k")
        wanted = expected.unique("k", keep=keep, maintain_order=True).sort("k", nulls_last=True)
        assert await found.data() == wanted.to_dict(as_series=False)
    single = odd.deduplicate("k", ODD, keep="none").order_by(ODD)
    assert await single[ODD].data() == [2, 3, None]
    assert await odd.deduplicate().count() == 5
    assert await odd.deduplicate(keep="none").count() == 4
    newest = frame.deduplicate("k", order_by=["k", "t"], descending=[False, True]).order_by("k")
    assert await newest["t"].data() == [3, 2, 5]


def test_deduplicating_by_a_key_needs_an_order(odd: Object) -> None:
    with pytest.raises(InputError, match="unique"):
        odd.deduplicate("k")
    with pytest.raises(InputError, match="it must be first, last or none"):
        odd.deduplicate("k", order_by="f", keep="any")  # type: ignore[arg-type]
    with pytest.raises(InputError):
        odd.deduplicate("nope", order_by="f")


async def test_or_where_adds_rows_to_those_of_where(odd: Object) -> None:
    view = odd.where(col("k") == "y").or_where(col(ODD) == 3)
    assert isinstance(view, View)
    assert await view[ODD].data() == [3, None, 2]
    assert await odd.where("k = 'y'").or_where("f = 1.5", col("k") == "x")[ODD].data() == [3, None, 2]
    again = odd.where("k = 'y'", col(ODD) > 1).or_where(col(ODD) == 1).or_where(col("f") == 1.5)
    assert await again[ODD].data() == [3, 1, 2, 1, 1]
    query = odd.with_columns(g=col(ODD) + 1)
    assert await query.where(col("g") == 4).or_where(col("g") == 3)["g"].data() == [4, 3]
    pushed = query.where(query["g"] == 4).or_where(col("g") == 3).or_where(query["k"] == "y")
    assert await pushed["g"].data() == [4, None, 3]
    for frame in (odd, query, odd.where("k = 'y'").limit(2), query.where(query["g"] == 4)):
        with pytest.raises(InputError):
            frame.or_where("g = 1" if "g" in frame.columns else "k = 'x'")
