"""What only the tools answer with; all other answers are those of REST."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from aaiclick.data.column_edges import ColumnEdge
from aaiclick.data.lineage import Lineage
from aaiclick.server.models.shown import Id, Shown


class LogEnd(BaseModel):
    """The end of a log, or the part before it."""

    text: str = Field(description="What the task wrote; bytes that are no UTF-8 are replaced.")
    size: int = Field(description="How many bytes the whole log has by now.")
    begins_at: int = Field(description="From which byte of it this is.")


class OperationAnswer(Shown):
    """An operation: which table it made, from which, by which query, in which task."""

    at: datetime
    operation: str
    result: str
    sources: list[str]
    query: str
    job_id: Id | None
    task_id: Id | None


class EdgeAnswer(BaseModel):
    """That a column comes from another, or only depends on it. An empty name is any column of its table."""

    source: str
    source_column: str
    result: str
    result_column: str
    how: str = Field(description="IDENTITY, TRANSFORMATION, AGGREGATION, FILTER, JOIN, …; UNKNOWN: it may be any.")
    operation: str

    @classmethod
    def of(cls, edge: ColumnEdge) -> Self:
        (source, source_column), (result, result_column), how, operation = edge
        return cls(
            source=source,
            source_column=source_column,
            result=result,
            result_column=result_column,
            how=how,
            operation=operation,
        )


class LineageAnswer(BaseModel):
    """The operations around a table, the oldest first, and which of its columns come from which."""

    table: str
    column: str | None
    operations: list[OperationAnswer]
    columns: list[EdgeAnswer]

    @classmethod
    def of(cls, found: Lineage, columns_max: int) -> Self:
        return cls(
            table=found.table,
            column=found.column,
            operations=[OperationAnswer.of(each) for each in found.operations],
            columns=[EdgeAnswer.of(each) for each in found.column_edges[:columns_max]],
        )


class MetricsAnswer(BaseModel):
    """Metrics in the text format of Prometheus."""

    text: str
