"""Whole frames summed up: value_counts, describe, corr."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import pandas as pd
import pytest

from aaiclick.data import Context, Object, col
from aaiclick.errors import InputError


async def test_how_often_each_value_occurs(context: Context, sales: Object) -> None:
    given = ["b", "a", None, "b", "é", "a"]
    frame = await context.create_object_from_value(given)
    assert await frame.value_counts().data() == {"value": ["a", "b", "é", None], "count": [2, 2, 1, 1]}
    shares = await frame.value_counts(name="share", normalize=True).data()
    assert shares == {"value": ["a", "b", "é", None], "share": [2 / 6, 2 / 6, 1 / 6, 1 / 6]}
    assert await sales.value_counts("city", "paid").data() == {
        "city": ["Rome", "Oslo", "Oslo"],
        "paid": [True, False, True],
        "count": [2, 1, 1],
    }
    doubled = sales.with_columns(city=col("city").upper())
    assert await doubled.value_counts("city", name="n").data() == {"city": ["OSLO", "ROME"], "n": [2, 2]}
    assert await frame.where("0").value_counts().data() == {"value": [], "count": []}
    for columns, name in ((["nope"], "count"), (["city"], "city"), (["city"], "")):
        with pytest.raises(InputError):
            sales.value_counts(*columns, name=name)


async def test_a_frame_is_described_column_by_column(context: Context) -> None:
    values = [1.5, None, 2.0, 9.0]
    frame = await context.create_object_from_value(
        {
            "f": values,
            "big 'n'": [2**63 - 1, 0, None, -5],
            "text": ["b", "é", "a", None],
            "day": [date(2024, 1, 1), date(2023, 1, 1), None, None],
            "m": [{"a": 1}, {}, {"b": 2}, {}],
            "d": [Decimal("1.10"), Decimal("1.30"), None, None],
        }
    )
    rows = {row["column"]: row for row in await (await frame.describe()).data(orient="records")}
    wanted = pd.Series(values).describe()
    assert list(rows) == list(frame.columns)
    assert list(rows["f"]) == ["column", "type", "count", "nulls", "mean", "std", "min", "q25", "median", "q75", "max"]
    assert [rows["f"][name] for name in ("mean", "std", "q25", "median", "q75")] == pytest.approx(
        [wanted[name] for name in ("mean", "std", "25%", "50%", "75%")]
    )
    assert (rows["f"]["count"], rows["f"]["nulls"], rows["f"]["type"]) == (3, 1, "Nullable(Float64)")
    assert (rows["big 'n'"]["min"], rows["big 'n'"]["max"]) == ("-5", str(2**63 - 1))
    assert (rows["text"]["min"], rows["text"]["max"], rows["text"]["mean"]) == ("a", "é", None)
    assert (rows["day"]["min"], rows["day"]["q25"], rows["day"]["nulls"]) == ("2023-01-01", None, 2)
    assert (rows["m"]["min"], rows["m"]["count"]) == (None, 4)
    assert rows["d"]["mean"] == pytest.approx(1.2)
    some = await frame.where("f > 100").describe("text", "f")
    assert await some.select("column", "count", "min").data() == {
        "column": ["text", "f"],
        "count": [0, 0],
        "min": [None, None],
    }
    with pytest.raises(InputError):
        await frame.describe("nope")


async def test_numbers_are_correlated_pair_by_pair(context: Context, sales: Object) -> None:
    given = {"a": [1, 2, 3, 4, None], "b b": [1.0, 4.0, None, 2.5, 3.0], "c": [4, 3, 2, 1, 0], "text": list("vwxyz")}
    frame = await context.create_object_from_value(given)
    found = await (await frame.corr()).data()
    wanted = pd.DataFrame({name: given[name] for name in ("a", "b b", "c")}).corr()
    assert found["column"] == ["a", "b b", "c"]
    for name in ("a", "b b", "c"):
        assert found[name] == pytest.approx(list(wanted[name]))
    assert (await (await frame.corr("a", "c")).data())["c"] == pytest.approx([-1.0, 1.0])
    constant = await (await frame.with_columns(a=1).corr("a", "c")).data()
    assert all(map(math.isnan, constant["a"]))
    for names in (("nope",), ("a", "a")):
        with pytest.raises(InputError):
            await frame.corr(*names)
    with pytest.raises(InputError, match="1 to 100"):
        await sales[["city"]].corr()
