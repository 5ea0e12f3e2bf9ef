"""What is answered about jobs and their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from aaiclick.orchestration.expectations import Unmet
from aaiclick.orchestration.jobs import JobStats, TaskError
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.rules.showing import ShownValue
from aaiclick.server.models.shown import Id, Shown
from aaiclick.server.models.tasks import UnmetAnswer


class JobAnswer(Shown):
    """A job: one run of a workflow."""

    id: Id
    name: str
    key: str | None
    status: str
    run_type: str
    preservation_mode: str
    registered_job_id: Id | None
    priority: int
    timeout_s: float | None
    fail_fast: bool
    arguments: dict[str, Any] | None = Field(description="What it was called with: shortened and masked.")
    scheduled_at: datetime | None = Field(description="The time of a schedule that it runs for.")
    backfill_id: Id | None
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    skipped_tasks: int
    created_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    error: str | None


class TaskErrorAnswer(Shown):
    """A task that failed: what was said, and where that was."""

    task_id: Id
    name: str
    error: str | None
    traceback: str | None


class JobErrors(BaseModel):
    """Tasks of a job that failed, with where they did; and what tasks expected of their data and did not find."""

    errors: list[TaskErrorAnswer]
    expectations: list[UnmetAnswer]

    @classmethod
    def of(cls, found: Sequence[TaskError], unmet: Sequence[Unmet]) -> Self:
        errors = [TaskErrorAnswer.of(each) for each in found]
        return cls(errors=errors, expectations=[UnmetAnswer.of(each) for each in unmet])


class ResultAnswer(BaseModel):
    """What a workflow returned. Of what is too large, `result` is the beginning of its JSON as a text."""

    job_id: Id
    result: Any
    complete: bool
    size: int = Field(description="How many characters its JSON has, or has at least.")

    @classmethod
    def of(cls, job_id: str, found: ShownValue) -> Self:
        return cls(job_id=job_id, result=found.value, complete=found.complete, size=found.size)


class JobPage(BaseModel):
    """Jobs, the newest first. `next` is the `before` of the page after this; null on the last one."""

    jobs: list[JobAnswer]
    next: Id | None

    @classmethod
    def of(cls, jobs: list[Job], limit: int) -> Self:
        return cls(jobs=[JobAnswer.of(job) for job in jobs], next=str(jobs[-1].id) if len(jobs) == limit else None)


class Cancelled(BaseModel):
    """False if the job had ended before."""

    cancelled: bool


class StatsAnswer(BaseModel):
    """A job in numbers."""

    job_id: Id
    name: str
    status: str
    total_tasks: int
    completed_tasks: int
    by_status: dict[str, int]
    error: str | None
    queued_s: float | None
    duration_s: float | None

    @classmethod
    def of(cls, stats: JobStats) -> Self:
        return cls(**{**asdict(stats), "job_id": str(stats.job_id)})


class GraphTask(Shown):
    """A task as a graph shows it."""

    id: Id
    name: str
    status: str
    group_id: Id | None
    parent_task_id: Id | None
    attempt: int
    started_at: datetime | None
    completed_at: datetime | None
    when: str


class GraphGroup(Shown):
    """A group as a graph shows it."""

    id: Id
    name: str
    parent_group_id: Id | None
    when: str


class GraphEdge(Shown):
    """`next` waits for `previous`; each is a task or a group."""

    previous_id: Id
    previous_type: str
    next_id: Id
    next_type: str


class GraphAnswer(BaseModel):
    """A job's whole graph."""

    tasks: list[GraphTask]
    groups: list[GraphGroup]
    dependencies: list[GraphEdge]


class GraphTaskPage(BaseModel):
    """Tasks of a job in the order in which they were made. `next` is the `after` of the next page."""

    tasks: list[GraphTask]
    next: Id | None
