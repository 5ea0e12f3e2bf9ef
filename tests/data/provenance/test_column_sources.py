"""Which columns come from which: read from the relation, without ClickHouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aaiclick.data import Context, Object, col, concat, raw
from aaiclick.data.frames import Frame
from aaiclick.data.objects import Object as Table
from aaiclick.data.provenance.column_sources import (
    DERIVED_MAX,
    SAME,
    UNKNOWN,
    ColumnSource,
    Derived,
    by_name,
    derived,
    trace,
)
from aaiclick.data.typing.schema import Schema

Wanted = dict[str, set[str]]


def _table(context: Context, name: str, *columns: str) -> Object:
    """A table that nobody asks for anything: it need not be there."""
    return Table(context, name, Schema.from_fields(dict.fromkeys(columns, "Int64")))


def _lists(table: Object) -> Object:
    """The same table, with lists in its columns."""
    return Table(table._context, "a", Schema.from_fields(dict.fromkeys(table.columns, "Array(Int64)")))


@pytest.fixture
def a(context: Context) -> Object:
    return _table(context, "a", "k", "v", "w")


@pytest.fixture
def b(context: Context) -> Object:
    return _table(context, "b", "k", "x")


def told(frame: Frame) -> Wanted:
    """Every column with what it comes from; under an empty name, what decides the rows."""
    found = trace(frame._relation)
    return {name: set(map(_short, sources)) for name, sources in (*found.columns.items(), ("", found.rows))}


def _short(source: ColumnSource) -> str:
    return f"{source.table}.{source.column} {source.how}"


CASES: list[tuple[Callable[[Any, Any], Frame], Wanted]] = [
    (lambda a, b: a[["k", "v"]], {"k": {"a.k IDENTITY"}, "v": {"a.v IDENTITY"}, "": set()}),
    (lambda a, b: a.rename({"v": "new"})["new"], {"new": {"a.v IDENTITY"}, "": set()}),
    (
        lambda a, b: a.where(a["w"] > 1)["v"] + a.where(a["w"] > 1)["v"].max(),
        {
            "v": {"a.v TRANSFORMATION", "a.v AGGREGATION", "a.w FILTER"},
            "": {"a.w FILTER"},
        },
    ),
    (lambda a, b: a["v"] + a["w"] * 2, {"v": {"a.v TRANSFORMATION", "a.w TRANSFORMATION"}, "": set()}),
    (lambda a, b: a["v"].cast("Float64"), {"v": {"a.v TRANSFORMATION"}, "": set()}),
    (
        lambda a, b: a.where("w > 1").order_by("v").limit(3)["k"],
        {"k": {"a.k IDENTITY"}, "": {"a.w FILTER", "a.v SORT"}},
    ),
    (
        lambda a, b: a.where("w > (SELECT 1)")["k"],
        {"k": {"a.k IDENTITY"}, "": {"a. FILTER"}},
    ),
    (
        lambda a, b: a.with_columns(r=raw("v + 1"), u=raw("x + 1"), one=raw("1"))[["r", "u", "one"]],
        {"r": {"a.v TRANSFORMATION"}, "u": {"a. TRANSFORMATION"}, "one": set(), "": set()},
    ),
    (
        lambda a, b: a.group_by("k").agg(total=("v", "sum"), rows="count"),
        {"k": {"a.k IDENTITY"}, "total": {"a.v AGGREGATION"}, "rows": set(), "": {"a.k GROUP_BY"}},
    ),
    (
        lambda a, b: a.join(b, on="k")[["k", "v", "x"]],
        {
            "k": {"a.k IDENTITY"},
            "v": {"a.v IDENTITY"},
            "x": {"b.x IDENTITY"},
            "": {"a.k JOIN", "b.k JOIN"},
        },
    ),
    (lambda a, b: a.join(b, on="k", how="right")["k"], {"k": {"b.k IDENTITY"}, "": {"a.k JOIN", "b.k JOIN"}}),
    (
        lambda a, b: a.join(b, on={"v": "x"}, how="full")["v"],
        {"v": {"a.v TRANSFORMATION", "b.x TRANSFORMATION"}, "": {"a.v JOIN", "b.x JOIN"}},
    ),
    (
        lambda a, b: a.join(b, on="k", how="semi")["v"],
        {"v": {"a.v IDENTITY"}, "": {"a.k JOIN", "b.k JOIN"}},
    ),
    (lambda a, b: concat(a["v"], b["x"]), {"v": {"a.v IDENTITY", "b.x IDENTITY"}, "": set()}),
    (
        lambda a, b: a["v"].isin(b.where(b["k"] > 1)["x"]),
        {"v": {"a.v TRANSFORMATION", "b.x TRANSFORMATION", "b.k FILTER"}, "": set()},
    ),
    (
        lambda a, b: a.with_columns(z=col("v").sum().over("k", order_by="w"))["z"],
        {"z": {"a.v AGGREGATION", "a.k WINDOW", "a.w WINDOW"}, "": set()},
    ),
    (
        lambda a, b: a.with_columns(z=(col("k") > 1).choose(col("v"), col("w")))["z"],
        {"z": {"a.v TRANSFORMATION", "a.w TRANSFORMATION", "a.k CONDITIONAL"}, "": set()},
    ),
    (lambda a, b: a[["k", "v"]].unique("k")["v"], {"v": {"a.v IDENTITY"}, "": {"a.k GROUP_BY"}}),
    (lambda a, b: _lists(a).explode("v")["v"], {"v": {"a.v TRANSFORMATION"}, "": {"a.v JOIN"}}),
    (lambda a, b: _lists(a).explode("v", "k")["v"], {"v": {"a.v TRANSFORMATION"}, "": {"a.v JOIN", "a.k JOIN"}}),
]


@pytest.mark.parametrize("number", range(len(CASES)))
async def test_columns_come_from_columns(a: Object, b: Object, number: int) -> None:
    make, wanted = CASES[number]
    assert told(make(a, b)) == wanted


async def test_an_expression_of_many_parts_is_walked_once(a: Object) -> None:
    value = col("v")
    for _ in range(200):
        value = value + value
    assert told(a.with_columns(z=value)["z"]) == {"z": {"a.v TRANSFORMATION"}, "": set()}


async def test_a_chain_of_many_steps_is_no_matter_of_recursion(a: Object) -> None:
    frame: Frame = a["v"]
    for _ in range(3_000):
        frame = frame.where(frame > 0)
    assert told(frame)[""] == {"a.v FILTER"}


async def test_what_is_noted_is_bounded(context: Context) -> None:
    names = [f"c{number}" for number in range(DERIVED_MAX + 1)]
    wide = _table(context, "wide", *names)
    relation = wide.where("c1 > 0").with_columns(c2=col("c1") + 1, new=7)._relation
    assert derived(relation, [wide._table]) == (
        Derived("", "wide", "", "IDENTITY"),
        Derived("c2", "wide", "c1", "TRANSFORMATION"),
        Derived("new", "", "", ""),
        Derived("", "wide", "c1", "FILTER"),
    )
    assert derived((wide + 1)._relation, [wide._table]) == UNKNOWN
    assert derived(wide[names[1:]]._relation, [wide._table])[0].column == "c1"  # not all of its columns
    assert derived(wide[["c1"]]._relation, [wide._table]) == (Derived("c1", "wide", "c1", "IDENTITY"),)


def test_parts_are_joined_by_the_names_of_their_columns() -> None:
    assert by_name({"a": ["x"], "b": ["x", "y"]}) == (
        Derived("x", "a", "x", "IDENTITY"),
        Derived("x", "b", "x", "IDENTITY"),
        Derived("y", "b", "y", "IDENTITY"),
    )
    many = {f"t{number}": ["x"] for number in range(DERIVED_MAX + 1)}
    assert by_name(many) == SAME
    assert by_name({**many, "other": ["y"]}) == UNKNOWN
