"""Edges between columns, read from logged operations, in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from aaiclick.data.provenance.column_sources import DIRECT, UNKNOWN, Derived
from aaiclick.data.provenance.operation_log import Operation


class TableColumn(NamedTuple):
    """A column of a table; an empty name stands for any of its columns."""

    table: str
    column: str


class ColumnEdge(NamedTuple):
    """From which column values go to which, how, and by which operation."""

    source: TableColumn
    result: TableColumn
    how: str
    operation: str

    @property
    def direct(self) -> bool:
        """Return whether values come from the source's values, or may do so; otherwise they only depend on them."""
        return self.how in DIRECT or self.how == "UNKNOWN"


def edges_of(operation: Operation) -> list[ColumnEdge]:
    return [_edge(operation, each.table, each.source, each.column, each.how) for each in _noted(operation)]


def edges_to(operation: Operation, columns: Iterable[str], indirect: bool) -> list[ColumnEdge]:
    """Return the edges that lead to these columns of the operation's result."""
    noted = list(_noted(operation, indirect))
    told = _told(operation)
    return [each for column in columns for each in _to(operation, noted, told, column)]


def _to(operation: Operation, noted: Iterable[Derived], told: set[str], column: str) -> Iterator[ColumnEdge]:
    for each in noted:
        if each.column == column or not column:
            yield _edge(operation, each.table, each.source, each.column, each.how)
        elif not each.column and each.how == "IDENTITY":
            if column not in told:
                yield _edge(operation, each.table, column, column, each.how)
        elif not each.column:
            yield _edge(operation, each.table, each.source, column, each.how)


def edges_from(operation: Operation, places: Iterable[TableColumn], indirect: bool) -> list[ColumnEdge]:
    """Return the edges that begin at these columns of the operation's sources."""
    noted = list(_noted(operation, indirect))
    told = _told(operation)
    return [each for place in places for each in _from(operation, noted, told, place)]


def _from(operation: Operation, noted: Iterable[Derived], told: set[str], place: TableColumn) -> Iterator[ColumnEdge]:
    for each in noted:
        if each.table != place.table or (each.source and place.column and each.source != place.column):
            continue
        if not each.column and each.how == "IDENTITY":
            if place.column not in told:
                yield _edge(operation, each.table, place.column, place.column, each.how)
        else:
            yield _edge(operation, each.table, each.source, each.column, each.how)


def _noted(operation: Operation, indirect: bool = True) -> Iterator[Derived]:
    """Yield the logged sources of its columns, each with a table; constants have none and are left out."""
    for each in operation.columns or UNKNOWN:
        if not each.how or not (indirect or each.how in DIRECT or each.how == "UNKNOWN"):
            continue
        for table in [each.table] if each.table else operation.sources:
            yield each._replace(table=table)


def _told(operation: Operation) -> set[str]:
    return {each.column for each in operation.columns}


def _edge(operation: Operation, table: str, source: str, column: str, how: str) -> ColumnEdge:
    return ColumnEdge(TableColumn(table, source), TableColumn(operation.result, column), how, operation.operation)
