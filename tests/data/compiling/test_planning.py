"""What is computed first, so that texts stay small and shallow; and what is refused."""

from __future__ import annotations

import pytest

from aaiclick.data.compiling.planning import (
    INLINE_MAX,
    NESTED_MAX,
    STEP_DEPTH,
    check_size,
    has_window,
    is_aggregate,
    is_long,
    steps,
)
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.operations import AGGREGATES, OPERATORS
from aaiclick.data.query.expressions import Column, Expression, Value, call, over
from aaiclick.data.query.relations import Filter, Join, Project, Relation, Slice, Sort, Table, Union
from aaiclick.errors import InputError

TABLE = Table("t", (Column("a"),))
ONE = Value(1)


def add(left: Expression, right: Expression) -> Expression:
    return call("add", OPERATORS["add"], left, right)


def floor(left: Expression, right: Expression) -> Expression:
    return call("floordiv", OPERATORS["floordiv"], left, right)


def total(value: Expression) -> Expression:
    return call("sum", AGGREGATES["sum"], value)


def nested(depth: int, start: Expression | None = None) -> Expression:
    found = start or Column("a")
    for _ in range(depth):
        found = add(found, ONE)
    return found


def test_what_is_short_is_written_as_it_is() -> None:
    assert steps([nested(STEP_DEPTH)]) == []
    assert not is_long([nested(STEP_DEPTH)])
    assert is_long([nested(STEP_DEPTH + 1)])


def test_what_is_deep_is_cut_into_steps() -> None:
    found = steps([nested(100)])
    assert [len(step) for step in found] == [1, 1, 1]


def test_what_is_shared_is_computed_once() -> None:
    doubled: Expression = Column("a")
    for _ in range(40):
        doubled = add(doubled, doubled)
    assert 2 < len(steps([doubled])) < 20
    assert len(to_sql(Project(TABLE, {"a": doubled}))) < 10_000


def test_an_argument_that_an_operation_names_thrice_counts_thrice() -> None:
    found: Expression = Column("a")
    for _ in range(12):
        found = floor(found, ONE)
    assert len(to_sql(Project(TABLE, {"a": found}))) < 10_000


def test_many_columns_are_many_but_not_deep() -> None:
    assert steps([add(Column(f"c{number}"), ONE) for number in range(INLINE_MAX)]) == []


def test_aggregates_wait_but_windows_do_not() -> None:
    assert is_aggregate(total(ONE))
    assert not is_aggregate(over(total(ONE), (), ()))
    assert steps([nested(100, total(Column("a")))]) == []
    assert len(steps([nested(100, over(total(Column("a")), (), ()))])) == 3
    assert has_window([nested(3, over(total(ONE), (), ()))])
    assert not has_window([nested(3)])


def test_too_many_steps_are_refused() -> None:
    found: Expression = Column("a")
    for _ in range(1_000):
        found = floor(found, ONE)
    with pytest.raises(InputError, match="steps"):
        steps([found])


def test_conditions_and_cuts_share_a_query_so_any_number_may_follow_each_other() -> None:
    relation: Relation = TABLE
    for _ in range(500):
        relation = Filter(relation, (Column("a"),))
    check_size(Project(Slice(Sort(relation, ()), 1), {"a": Column("a")}))


def test_queries_inside_queries_are_counted() -> None:
    relation: Relation = TABLE
    for _ in range(NESTED_MAX):
        relation = Project(relation, {"a": nested(1)})
    assert to_sql(relation)
    with pytest.raises(InputError, match="queries inside each other"):
        to_sql(Project(relation, {"a": nested(1)}))


def test_what_would_be_written_too_often_is_refused_before() -> None:
    relation: Relation = TABLE
    for _ in range(40):
        relation = Union((relation, relation))
    with pytest.raises(InputError, match="longer than"):
        to_sql(relation)
    joined: Relation = TABLE
    for number in range(40):
        joined = Join(joined, joined, (("a", "a"),), "inner", {"a": f"a{number}"})
    with pytest.raises(InputError, match="longer than"):
        to_sql(joined)
