"""Edges between columns, from what was noted of operations."""

from __future__ import annotations

from datetime import UTC, datetime

from aaiclick.data.provenance.column_edges import TableColumn, edges_from, edges_of, edges_to
from aaiclick.data.provenance.column_sources import SAME, Derived
from aaiclick.data.provenance.operation_log import Operation

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def operation(*columns: Derived) -> Operation:
    return Operation(NOW, "materialize", "r", ("s", "t"), "", columns=columns)


MIXED = operation(
    Derived("", "s", "", "IDENTITY"),
    Derived("x", "t", "y", "AGGREGATION"),
    Derived("one", "", "", ""),
    Derived("z", "s", "c", "CONDITIONAL"),
    Derived("", "s", "f", "FILTER"),
)


def test_columns_that_are_not_told_come_from_those_of_their_names() -> None:
    assert [edge.source for edge in edges_to(MIXED, ["a"], indirect=False)] == [("s", "a")]
    assert [edge.source for edge in edges_to(MIXED, ["x"], indirect=False)] == [("t", "y")]
    assert [edge.result for edge in edges_from(MIXED, [TableColumn("s", "a")], indirect=False)] == [("r", "a")]
    assert edges_from(MIXED, [TableColumn("s", "x")], indirect=False) == []


def test_constants_come_from_nothing() -> None:
    assert edges_to(MIXED, ["one"], indirect=False) == []


def test_what_only_decides_is_told_if_it_is_asked_for() -> None:
    assert edges_to(MIXED, ["z"], indirect=False) == []
    assert [edge.how for edge in edges_to(MIXED, ["z"], indirect=True)] == ["CONDITIONAL", "FILTER"]
    assert [edge.result for edge in edges_from(MIXED, [TableColumn("s", "f")], indirect=True)] == [
        ("r", "f"),
        ("r", ""),
    ]


def test_what_is_not_known_may_come_from_any_column_of_any_source() -> None:
    old = operation()
    assert [edge.source for edge in edges_to(old, ["x"], indirect=False)] == [("s", ""), ("t", "")]
    assert [edge.result for edge in edges_from(old, [TableColumn("t", "y")], indirect=False)] == [("r", "")]
    assert all(edge.direct for edge in edges_of(old))


def test_without_a_name_a_place_is_any_column() -> None:
    assert len(edges_to(MIXED, [""], indirect=True)) == 4
    assert [edge.source for edge in edges_of(operation(*SAME))] == [("s", ""), ("t", "")]
