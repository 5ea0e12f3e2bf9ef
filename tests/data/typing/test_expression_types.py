"""Types that are told before anything runs, and zeros that are one."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any

import pytest

from aaiclick.data import Context, col, concat, lit
from aaiclick.data.query.expressions import Value
from aaiclick.data.query.relations import column_of
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import common, joint, kind_of_value, like, maybe
from aaiclick.data.typing.grammar import parse

VALUES: list[Any] = [0, 255, 256, -1, -129, 2**32, 2**63, -(2**63), 2**70, True, 1.5, "x", Decimal("1.50"), None]
SHORT = {"Float64", "Float32", "Int8", "Int16", "Int32", "UInt8", "UInt16", "UInt32", "Bool", "Decimal(9, 2)"}
KINDS = {
    **{f"i{bits}": f"Int{bits}" for bits in (8, 16, 32, 64, 128, 256)},
    **{f"u{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64, 128)},
    "n": "Nullable(Int64)",
    "f": "Float64",
    "g": "Float32",
    "t": "Bool",
    "w": "Nullable(Int16)",
    "d": "Decimal(9, 2)",
    "e": "Decimal(38, 10)",
    "m": "Nullable(Decimal(18, 4))",
}


async def test_constants_have_the_types_that_clickhouse_gives_them(context: Context) -> None:
    listed = ", ".join(f"toTypeName({text})" for text in map(quoting.literal, VALUES))
    found = await context.client.rows(f"SELECT {listed}")
    assert [parse_or_none(column[0]) for column in found.columns] == [
        None if value is None else kind_of_value(value) for value in VALUES
    ]


def parse_or_none(text: str) -> Any:
    return None if text == "Nullable(Nothing)" else parse(text)


async def test_answers_have_the_types_that_clickhouse_gives_them(context: Context) -> None:
    made = await context.create_object(KINDS)
    new: dict[str, Any] = {}
    for one in KINDS:
        new |= {f"neg {one}": -made[one], f"abs {one}": abs(made[one])}
        for other in KINDS:
            a, b = made[one], made[other]
            if {one, other} & {"f", "g"} and {one, other} & {"i128", "i256", "u128"}:
                continue  # ClickHouse has no words for these
            new |= {f"{one} + {other}": a + b, f"{one} - {other}": a - b, f"{one} * {other}": a * b}
            new |= {f"{one} / {other}": a / b, f"{one} // {other}": a // b, f"{one} % {other}": a % b}
            new |= {f"{one} < {other}": a < b}
    query = made.with_columns(**new)
    found = await context.client.rows(f"DESCRIBE TABLE ({query.explain()})")
    engine = dict(zip(found.columns[0], found.columns[1], strict=True))
    told = {name: column_of(query._relation, name).kind for name in new}
    assert {name: str(kind) for name, kind in told.items() if kind} == {
        name: engine[name] for name, kind in told.items() if kind
    }
    unknown = {name for name, kind in told.items() if kind is None}
    assert all("//" in name for name in unknown), unknown


async def test_choices_and_bits_have_the_types_that_clickhouse_gives_them(context: Context) -> None:
    kinds = {name: kind for name, kind in KINDS.items() if "Int" in kind}
    made = await context.create_object(kinds)
    new: dict[str, Any] = {}
    for one in kinds:
        a = made[one]
        new |= {f"~{one}": ~a, f"{one} >> 1": a >> 1, f"sign {one}": a.sign(), f"round {one}": a.round(-1)}
        new |= {f"hash {one}": a.hash(), f"{one} & 7": a & 7, f"{one} or 0": a.coalesce(0)}
        for other in kinds:
            b = made[other]
            new |= {f"{one} | {other}": a | b}
            if "Nullable" not in kinds[one] + kinds[other]:
                new |= {f"least {one} {other}": a.least(b), f"greatest {one} {other}": a.greatest(b)}
            if joint([parse(kinds[one]), parse(kinds[other])]) is not None:  # else ClickHouse has no words for it
                new |= {f"{one} or {other}": a.coalesce(b), f"fill {one} {other}": a.fill_null(b)}
                new |= {f"choose {one} {other}": (a > 1).choose(a, b), f"clip {one} {other}": a.clip(b, a)}
    query = made.with_columns(**new)
    found = await context.client.rows(f"DESCRIBE TABLE ({query.explain()})")
    engine = dict(zip(found.columns[0], found.columns[1], strict=True))
    told = {name: column_of(query._relation, name).kind for name in new}
    wrong = {
        name: (str(kind), engine[name])
        for name, kind in told.items()
        if kind is not None and engine[name] not in (str(kind), str(kind.bare))
    }
    assert not wrong
    assert not {
        name for name, kind in told.items() if kind is None and not name.startswith(("least", "greatest", "round"))
    }


async def test_choices_among_floats_and_others_have_the_types_that_clickhouse_gives_them(context: Context) -> None:
    kinds = {name: kind for name, kind in KINDS.items() if kind in SHORT}
    made = await context.create_object(kinds)
    new: dict[str, Any] = {}
    for one, other in itertools.product(("f", "g"), kinds):
        a, b = made[one], made[other]
        new |= {f"least {one} {other}": a.least(b), f"greatest {other} {one}": b.greatest(a)}
        if other != "d":  # else ClickHouse has no words for it
            new |= {f"{one} or {other}": a.coalesce(b), f"choose {one} {other}": (a > 1).choose(a, b)}
    query = made.with_columns(**new)
    found = await context.client.rows(f"DESCRIBE TABLE ({query.explain()})")
    engine = dict(zip(found.columns[0], found.columns[1], strict=True))
    assert {name: str(column_of(query._relation, name).kind) for name in new} == {name: engine[name] for name in new}


async def test_what_is_chosen_is_nan_where_one_was_chosen_before(context: Context) -> None:
    made = await context.create_object_from_value(
        {"single": [2.5], "none": [0], "much": [2**256 - 1], "price": [Decimal("1.50")]},
        fields={"single": "Float32", "none": "Int64", "much": "Nullable(UInt256)", "price": "Decimal(9, 2)"},
    )
    nan = lit(math.nan)
    asked = {
        "a": nan.greatest(col("single")).least(col("none") / col("much")),
        "b": nan.least(col("price")).greatest(col("single")),
        "c": col("single").coalesce(1).least(nan).greatest(0),
    }
    (row,) = (await made.select(**asked).arrow()).to_pylist()
    assert [math.isnan(value) for value in row.values()] == [True] * 3


async def test_totals_have_the_types_that_clickhouse_gives_them(context: Context) -> None:
    made = await context.create_object(KINDS)
    for name in ("sum", "mean", "min", "max", "count", "nunique", "std", "first"):
        query = made.agg(dict.fromkeys(KINDS, name))
        found = await context.client.rows(f"DESCRIBE TABLE ({query.explain()})")
        told = [column_of(query._relation, column).kind for column in query.columns]
        assert [str(kind or engine) for kind, engine in zip(told, found.columns[1], strict=True)] == list(
            found.columns[1]
        ), name


def test_a_type_is_common_only_where_all_agree() -> None:
    whole, text = parse("Int64"), parse("String")
    assert common([whole, whole]) == whole
    assert common([whole, parse("Nullable(Int64)")]) == parse("Nullable(Int64)")
    assert common([whole, Value(None).kind]) == parse("Nullable(Int64)")
    assert common([whole, text]) is common([whole, None]) is common([None, whole]) is None
    assert maybe(parse("Array(Int64)")) == parse("Array(Int64)")
    assert like(whole, None, text) == whole


@pytest.mark.parametrize("kind", ["Float64", "Nullable(Float64)", "Float32"])
async def test_the_two_zeros_are_one(context: Context, kind: str) -> None:
    made = await context.create_object_from_value({"a": [0.0, -0.0, 1.5], "n": [1, 2, 3]}, fields={"a": kind})
    other = await context.create_object_from_value({"a": [-0.0]}, fields={"a": kind})
    assert len(await made["a"].unique().data()) == 2
    assert await made.unique("a").count() == 2
    assert await made["a"].nunique().data() == 2
    assert await made["a"].isin([-0.0]).data() == [True, True, False]
    assert await made["a"].isin(other["a"]).data() == [True, True, False]
    assert await made.join(other, on="a").count() == 2
    assert await made.join(other, on="a", how="anti")["n"].data() == [3]
    groups = await made.group_by("a").agg(n=("n", "sum")).order_by("a").data()
    assert groups == {"a": [0.0, 1.5], "n": [3, 3]}
    more = await made.group_by("a").agg(n=("n", "count")).order_by("a").data()
    assert more == {"a": [0.0, 1.5], "n": [2, 1]}
    assert (await made.unique().data())["a"][0] == 0.0
    assert len(await concat(made["a"], other["a"]).unique().data()) == 2
