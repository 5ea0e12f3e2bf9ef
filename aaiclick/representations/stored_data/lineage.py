"""Lineage: which operations made a table, and which columns come from which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typing_extensions import TypedDict

from aaiclick.representations.fields import Form, Id, Time, facts_of

if TYPE_CHECKING:
    from aaiclick.data.lineage import Lineage
    from aaiclick.data.provenance.column_edges import ColumnEdge


class OperationAnswer(TypedDict):
    """An operation: which table it made, from which, by which query, in which task."""

    at: Time
    operation: str
    result: str
    sources: list[str]
    query: str
    job_id: Id | None
    task_id: Id | None


class EdgeAnswer(TypedDict):
    """One column comes from another, or only depends on it. An empty name means any column of its table."""

    source: str
    source_column: str
    result: str
    result_column: str
    how: Annotated[
        str,
        Form(description="IDENTITY, TRANSFORMATION, AGGREGATION, FILTER, JOIN, …; UNKNOWN if it may be any of them."),
    ]
    operation: str


class LineageAnswer(TypedDict):
    """The operations around a table, oldest first, and which of its columns come from which."""

    table: str
    column: str | None
    operations: list[OperationAnswer]
    columns: list[EdgeAnswer]


def lineage_answer(found: Lineage, columns_max: int) -> LineageAnswer:
    """Return what was traced, with so many edges between columns."""
    return LineageAnswer(
        table=found.table,
        column=found.column,
        operations=[facts_of(OperationAnswer, each, sources=list(each.sources)) for each in found.operations],
        columns=[_edge(each) for each in found.column_edges[:columns_max]],
    )


def _edge(edge: ColumnEdge) -> EdgeAnswer:
    (source, source_column), (result, result_column), how, operation = edge
    return EdgeAnswer(
        source=source,
        source_column=source_column,
        result=result,
        result_column=result_column,
        how=how,
        operation=operation,
    )
