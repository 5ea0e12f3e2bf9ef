"""What only the tools answer with; all other answers are those of REST."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

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


class LineageAnswer(BaseModel):
    """The operations around a table, the oldest first."""

    table: str
    operations: list[OperationAnswer]

    @classmethod
    def of(cls, found: Lineage) -> Self:
        return cls(table=found.table, operations=[OperationAnswer.of(each) for each in found.operations])


class MetricsAnswer(BaseModel):
    """Metrics in the text format of Prometheus."""

    text: str
