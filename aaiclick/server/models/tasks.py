"""What is answered about tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel

from aaiclick.orchestration.expectations import Unmet
from aaiclick.orchestration.models import Run, Task
from aaiclick.orchestration.rules.pending import Pending
from aaiclick.orchestration.rules.showing import show_stored_arguments
from aaiclick.server.models.shown import Id, Shown, plain


class TaskAnswer(Shown):
    """A task: one unit of work of a job."""

    id: Id
    job_id: Id
    group_id: Id | None
    name: str
    entrypoint: str
    status: str
    epoch: int
    attempt: int
    crash_count: int
    lost_count: int
    max_retries: int
    generation: int
    priority: int
    critical: bool
    stop_when_cut_off: bool
    when: str
    timeout_s: float | None
    worker_id: Id | None
    created_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    run_after: datetime | None
    error: str | None


class UnmetAnswer(Shown):
    """What a run of a task expected of its data and did not find: `failed`, or `warned` only."""

    task_id: Id
    epoch: int
    outcome: str
    line: str
    at: datetime


class TaskDetail(TaskAnswer):
    """A task, with its arguments, and where its last attempt failed that left a traceback.

    `expectations`: what it expected of its data and did not find.
    """

    arguments: dict[str, Any]
    traceback: str | None = None
    expectations: list[UnmetAnswer]

    @classmethod
    def told(cls, task: Task, traceback: str | None, unmet: Sequence[Unmet]) -> Self:
        facts = TaskAnswer.of(task).model_dump() | {"arguments": show_stored_arguments(task.kwargs_json)}
        return cls(**facts, traceback=traceback, expectations=[UnmetAnswer.of(each) for each in unmet])


class RunAnswer(Shown):
    """An attempt at a task that ended."""

    task_id: Id
    epoch: int
    attempt: int
    worker_id: Id | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    error: str | None
    traceback: str | None


class RunList(BaseModel):
    """The attempts at a task that ended, the oldest first."""

    runs: list[RunAnswer]

    @classmethod
    def of(cls, runs: list[Run]) -> Self:
        return cls(runs=[RunAnswer.of(run) for run in runs])


class Cleared(BaseModel):
    """The tasks that will run again, or would (`dry_run`); those that were asked for come first."""

    task_ids: list[Id]
    dry_run: bool

    @classmethod
    def of(cls, task_ids: list[int], dry_run: bool = False) -> Self:
        return cls(task_ids=[str(each) for each in task_ids], dry_run=dry_run)


class DeadLetterPage(BaseModel):
    """Tasks that were given up, those of the newest jobs first. `next` is the `before` of the next page."""

    tasks: list[TaskAnswer]
    next: str | None

    @classmethod
    def of(cls, tasks: list[Task], limit: int) -> Self:
        last = f"{tasks[-1].job_id}-{tasks[-1].id}" if len(tasks) == limit else None
        return cls(tasks=[TaskAnswer.of(task) for task in tasks], next=last)


class BlockerAnswer(Shown):
    """A task or group that something waits for."""

    id: Id
    kind: str
    name: str
    status: str
    open_count: int
    gate: str | None


class PendingAnswer(BaseModel):
    """Why a task does not run: `line` says it in words, the rest for programs."""

    task_id: Id
    job_id: Id
    name: str
    status: str
    reason: str
    line: str
    waits_for: list[BlockerAnswer]
    more: int
    run_after: datetime | None
    delay_s: float | None
    before: int | None
    worker_id: Id | None
    live_workers: int | None
    slots: int | None
    slots_taken: int | None

    @classmethod
    def of(cls, found: Pending) -> Self:
        facts = {name: plain(name, getattr(found, name)) for name in cls.model_fields if name != "waits_for"}
        return cls(**facts, waits_for=[BlockerAnswer.of(each) for each in found.waits_for])
