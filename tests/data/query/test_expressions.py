"""Expressions as plain data: depth, truth, what they are made of, and replacing parts."""

from __future__ import annotations

import pytest

from aaiclick.data.operations import AGGREGATES, FUNCTIONS, OPERATORS
from aaiclick.data.query.expressions import (
    DEPTH_MAX,
    Call,
    Cast,
    Column,
    Expression,
    Key,
    Member,
    Over,
    Raw,
    Value,
    call,
    deeper,
    depth_of,
    over,
    over_columns,
    parts_of,
    replaced,
    times_written,
    walk,
)
from aaiclick.errors import InputError

A, B, T = Column("a"), Column("b"), Column("t", truth=True)


def add(left: Expression, right: Expression) -> Call:
    return call("add", OPERATORS["add"], left, right)


def total(value: Expression) -> Call:
    return call("sum", AGGREGATES["sum"], value)


def test_depth_counts_operations_inside_operations() -> None:
    assert [depth_of(each) for each in (A, add(A, B), add(add(A, B), A))] == [0, 1, 2]
    assert depth_of(over(total(add(A, B)), (), ())) == 2


def test_what_is_too_deep_is_refused_with_a_way_out() -> None:
    deep: Expression = A
    for _ in range(DEPTH_MAX):
        deep = add(deep, B)
    with pytest.raises(InputError, match="Await a part of it"):
        deeper([deep])


def test_truth_is_known_where_all_arguments_are_truths() -> None:
    both = call("and", OPERATORS["and"], T, T)
    mixed = call("and", OPERATORS["and"], T, A)
    assert (both.truth, mixed.truth) == (True, False)
    assert both.sql != mixed.sql
    assert call("and", OPERATORS["and"], T, Value(None)).truth
    assert not call("and", OPERATORS["and"], Value(None), Value(None)).truth
    assert call("choose", FUNCTIONS["choose"], A, T, Value(False)).truth
    assert not call("choose", FUNCTIONS["choose"], T, A, T).truth
    assert over(call("max", AGGREGATES["max"], T), (), ()).truth


def test_parts_come_before_what_is_made_of_them_and_each_once() -> None:
    shared = add(A, B)
    whole = add(shared, shared)
    assert [*walk([whole])] == [A, B, shared, whole]
    assert [*walk([whole], {id(shared)})] == [whole]
    assert parts_of(Member(A, (1,), 1)) == (A,)
    assert parts_of(Cast(A, "Int8", 1)) == (A,)
    assert parts_of(Raw("x")) == ()


def test_a_window_is_made_of_the_arguments_of_its_function() -> None:
    found = over(total(A), (B,), (Key(T),))
    assert parts_of(found) == (A, B, T)


def test_only_totals_and_window_functions_have_rows_around() -> None:
    with pytest.raises(InputError, match="Compute with the result"):
        over(add(total(A), B), (), ())


def test_it_is_known_how_often_a_part_is_written() -> None:
    floor = call("floordiv", OPERATORS["floordiv"], A, B)
    assert dict(times_written(floor)) == {A: 3, B: 3}
    assert dict(times_written(over(total(A), (B,), ()))) == {A: 1, B: 1}


def test_columns_are_replaced_everywhere_and_truth_is_found_anew() -> None:
    inverted = call("invert", OPERATORS["invert"], A)
    found = over_columns(inverted, {"a": T})
    assert isinstance(found, Call)
    assert (inverted.truth, found.truth, found.args) == (False, True, (T,))
    window = over(total(A), (B,), (Key(A, descending=True),))
    moved = over_columns(window, {"a": B, "b": A})
    assert isinstance(moved, Over)
    assert (moved.value.args, moved.by, moved.order) == ((B,), (A,), (Key(B, descending=True),))
    assert parts_of(over_columns(Member(A, (1,), 1), {"a": T})) == (T,)
    assert parts_of(over_columns(Cast(A, "Int8", 1), {"a": B})) == (B,)


def test_what_has_nothing_to_replace_stays_the_same() -> None:
    whole = add(add(A, B), B)
    assert replaced(whole, {}) is whole
    assert over_columns(whole, {"a": A, "b": B}) is whole
