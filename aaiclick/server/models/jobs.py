"""What is answered about jobs and their graphs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Self

from pydantic import BaseModel

from aaiclick.orchestration.jobs import JobStats
from aaiclick.orchestration.models import Job
from aaiclick.server.models.shown import Id, Shown


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
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    created_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    error: str | None


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


class GraphGroup(Shown):
    """A group as a graph shows it."""

    id: Id
    name: str
    parent_group_id: Id | None


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
