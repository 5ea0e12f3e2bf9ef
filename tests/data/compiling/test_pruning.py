"""Columns that nothing uses are left out of inner queries; rows and answers stay."""

from __future__ import annotations

import re

from aaiclick.data import Context, Object, col, raw
from aaiclick.data.compiling.pruning import pruned
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.operations import OPERATORS
from aaiclick.data.query.expressions import Column, Value, call
from aaiclick.data.query.relations import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Project,
    Relation,
    Slice,
    Table,
    Union,
)

T = Table("t", tuple(map(Column, "abcd")))
P = Project(T, {each: Column(each) for each in "abcd"})
MORE = call("gt", OPERATORS["gt"], Column("a"), Value(1))


def _below(relation: Relation, *names: str) -> tuple[str, ...]:
    """Return the columns of the innermost query that are left if only `names` are used."""
    found = pruned(relation, names)
    while not isinstance(found, Project) or found.source is not T:
        found = found.sources[0] if isinstance(found, Union) else found.source  # type: ignore[union-attr]
    return found.names


def test_what_a_step_uses_is_kept() -> None:
    assert _below(P, "b") == ("b",)
    assert _below(P) == ("a",)  # one column at least: rows are counted, too
    assert _below(Filter(P, (MORE,)), "b") == ("a", "b")
    assert _below(Slice(Filter(P, (MORE,)), 5), "d") == ("a", "d")
    assert _below(Project(P, {"x": MORE, "y": Column("c")}), "y") == ("c",)
    assert _below(Aggregate(P, {"c": Column("c")}, {"m": MORE})) == ("a", "c")
    assert _below(Distinct(P, ("a",)), "b") == ("a", "b")
    assert _below(Explode(P, ("d",)), "b") == ("b", "d")


def test_what_needs_whole_rows_keeps_them() -> None:
    assert _below(Distinct(P), "b") == P.names
    assert _below(Union((P, P)), "b") == P.names
    assert _below(Filter(P, (raw("a > 1").expression,)), "b") == P.names


def test_a_table_keeps_its_columns() -> None:
    """`SELECT *` reads them all: a made-up name, such as that of a step, must differ from all of them."""
    assert pruned(Filter(T, (MORE,)), ("b",)).names == T.names
    assert pruned(Join(T, T, (("a", "a"),), "inner", {}), ("b",)).names == ("a", "b")


def test_all_columns_are_asked_for_at_the_end() -> None:
    assert to_sql(T) == "SELECT `a`, `b`, `c`, `d` FROM `t`"


def test_long_chains_of_filters_are_no_recursion() -> None:
    relation: Relation = P
    for _ in range(3_000):
        relation = Filter(relation, (MORE,))
    assert _below(relation, "b") == ("a", "b")


async def _sales(context: Context) -> tuple[Object, Object]:
    sold = {"shop": [1, 1, 2, 3], "n": [5, 6, 7, 8], "note": ["a", "b", "c", "d"]}
    shops = {"id": [1, 2, 4], "name": ["x", "y", "z"], "note": ["e", "f", "g"]}
    return await context.create_object_from_value(sold), await context.create_object_from_value(shops)


async def test_joins_give_the_columns_that_are_used(context: Context) -> None:
    sold, shops = await _sales(context)
    totals = sold.join(shops, on={"shop": "id"}).group_by("name").agg(n=col("n").sum()).order_by("name")
    assert "note" not in totals.explain()
    assert await totals.data() == {"name": ["x", "y"], "n": [11, 7]}


async def test_every_kind_of_join_gives_the_same_rows(context: Context) -> None:
    sold, shops = await _sales(context)
    for kind in ("inner", "left", "right", "full", "semi", "anti"):
        joined = sold.join(shops[["id", "name"]], on={"shop": "id"}, how=kind)
        whole = await joined.data()
        for name in joined.columns:
            alone = await joined[name].data()
            assert sorted(alone, key=repr) == sorted(whole[name], key=repr), (kind, name)


async def test_queries_inside_expressions_are_pruned(context: Context) -> None:
    sold, shops = await _sales(context)
    known = sold.where(col("shop").isin(shops.where(col("name") != "y")["id"]), col("n") > sold["n"].mean() - 1)
    assert re.findall("note", known["n"].explain()) == []
    assert await known["n"].data() == [6]
