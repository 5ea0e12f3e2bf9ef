"""Relations as plain data: names, truths, order, and the tables they read."""

from __future__ import annotations

from aaiclick.data.operations import AGGREGATES, OPERATORS
from aaiclick.data.query.expressions import Column, Key, Member, Value, call
from aaiclick.data.query.relations import (
    Aggregate,
    Aligned,
    Distinct,
    Explode,
    Filter,
    Join,
    Nowhere,
    Project,
    Relation,
    Slice,
    Sort,
    Table,
    Union,
    column_of,
    expressions_of,
    free_prefix,
    is_ordered,
    is_sorted,
    one,
    own_columns,
    sources_of,
    tables_of,
    with_order,
)
from aaiclick.data.typing.schema import ORDER

PLAIN = Table("plain", (Column("a"), Column("t", truth=True)))
ORDERED = Table("ordered", (Column("a"),), ordered=True)
TRUE = call("gt", OPERATORS["gt"], Column("a"), Value(1))
TOTAL = Aggregate(PLAIN, {}, {"n": call("sum", AGGREGATES["sum"], Column("a"))})


def test_names_are_those_of_the_rows() -> None:
    joined = Join(PLAIN, ORDERED, (("a", "a"),), "left", {"a": "a_right"})
    found: list[Relation] = [
        Filter(PLAIN, (TRUE,)),
        Sort(PLAIN, (Key(TRUE),)),
        Slice(PLAIN, 1),
        Distinct(PLAIN),
        Explode(PLAIN, ("a",)),
        Union((PLAIN, PLAIN)),
    ]
    assert {each.names for each in found} == {("a", "t")}
    assert Nowhere().names == ()
    assert joined.names == ("a", "t", "a_right")
    assert Aligned((ORDERED, ORDERED)).names == ("0.a", "1.a")
    assert Aggregate(PLAIN, {"k": TRUE}, {"n": TRUE}).names == ("k", "n")
    assert [*own_columns(TOTAL)] == ["n"]


def test_truths_are_known_through_everything() -> None:
    joined = Join(ORDERED, PLAIN, (("a", "a"),), "left", {"t": "t_right"})
    through: list[tuple[Relation, str]] = [
        (Filter(Sort(Slice(Distinct(PLAIN), 1), ()), (TRUE,)), "t"),
        (Project(PLAIN, {"x": TRUE}), "x"),
        (Aggregate(PLAIN, {"k": TRUE}, {}), "k"),
        (Union((PLAIN, PLAIN)), "t"),
        (joined, "t_right"),
        (Explode(PLAIN, ("a",)), "t"),
    ]
    assert [column_of(relation, name).truth for relation, name in through] == [True] * len(through)
    others: list[tuple[Relation, str]] = [
        (joined, "a"),
        (Explode(PLAIN, ("t",)), "t"),
        (TOTAL, "n"),
        (Project(PLAIN, {"x": Column("a")}), "x"),
    ]
    assert [column_of(relation, name).truth for relation, name in others] == [False] * len(others)
    assert one(Project(PLAIN, {"x": TRUE})).truth


def test_order_lives_through_conditions_and_columns_only() -> None:
    kept: list[Relation] = [
        ORDERED,
        Filter(ORDERED, (TRUE,)),
        Project(Filter(ORDERED, ()), {"x": TRUE}),
        Aligned((ORDERED, ORDERED)),
        Union((ORDERED, ORDERED)),
    ]
    lost: list[Relation] = [PLAIN, Slice(ORDERED, 1), Sort(ORDERED, ()), TOTAL, Union((ORDERED, PLAIN))]
    assert [is_ordered(each) for each in kept] == [True] * len(kept)
    assert [is_ordered(each) for each in lost] == [False] * len(lost)
    assert with_order(Project(Filter(ORDERED, ()), {"x": TRUE})).names == ("x", ORDER)
    assert is_sorted(Project(Filter(Slice(Sort(PLAIN, ()), 1), ()), {}))
    assert not is_sorted(PLAIN)


def test_all_tables_are_found_even_in_conditions_and_however_often_they_are_shared() -> None:
    inner = Filter(PLAIN, (Member(Column("a"), Project(ORDERED, {"a": Column("a")}), 1),))
    assert {table.name for table in tables_of(inner)} == {"plain", "ordered"}
    assert [table.name for table in tables_of(Project(Nowhere(), {"x": one(TOTAL)}))] == ["plain"]
    doubled: Relation = PLAIN
    for _ in range(60):
        doubled = Union((doubled, doubled))
    assert [table.name for table in tables_of(doubled)] == ["plain"]


def test_sources_and_expressions_are_one_step_down() -> None:
    assert sources_of(Join(PLAIN, ORDERED, (), "cross", {})) == (PLAIN, ORDERED)
    assert sources_of(PLAIN) == ()
    assert expressions_of(Sort(PLAIN, (Key(TRUE),))) == [TRUE]
    assert expressions_of(PLAIN) == []


def test_our_own_names_are_never_somebody_elses() -> None:
    assert free_prefix([]) == "__"
    assert free_prefix(["a", "__0", "___x"]) == "____"
