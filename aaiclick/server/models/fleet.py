"""What is answered about workers, events, changes and health."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel

from aaiclick.orchestration.health import Health
from aaiclick.orchestration.models import Event, Worker
from aaiclick.orchestration.models.token import AuditEntry
from aaiclick.server.models.shown import Id, Shown


class WorkerAnswer(Shown):
    """A worker with its session."""

    id: Id
    name: str | None
    hostname: str
    pid: int
    status: str
    concurrency: int
    tasks_completed: int
    tasks_failed: int
    started_at: datetime
    last_heartbeat: datetime
    expires_at: datetime


class WorkerPage(BaseModel):
    """Workers, the newest first. `next` is the `before` of the page after this; null on the last one."""

    workers: list[WorkerAnswer]
    next: Id | None

    @classmethod
    def of(cls, workers: Sequence[Worker], limit: int) -> Self:
        following = str(workers[-1].id) if len(workers) == limit else None
        return cls(workers=[WorkerAnswer.of(worker) for worker in workers], next=following)


class Asked(BaseModel):
    """False if the worker's session was over already."""

    asked: bool


class EventAnswer(Shown):
    """A move of a job or a task."""

    id: Id
    job_id: Id
    task_id: Id | None
    epoch: int | None
    move: str
    status: str
    worker_id: Id | None
    at: datetime
    detail: str | None


class EventPage(BaseModel):
    """Events in order. `next` is the `after` of the next page: there may always be one."""

    events: list[EventAnswer]
    next: Id

    @classmethod
    def of(cls, events: list[Event], cursor: int) -> Self:
        return cls(events=[EventAnswer.of(event) for event in events], next=str(cursor))


class AuditAnswer(Shown):
    """Who changed what. Without an outcome it was cut off, and may have happened or not."""

    id: Id
    at: datetime
    actor_id: Id | None
    actor: str
    verb: str
    target: str
    outcome: str | None


class AuditPage(BaseModel):
    """Changes from outside, the newest first. `next` is the `before` of the next page."""

    entries: list[AuditAnswer]
    next: Id | None

    @classmethod
    def of(cls, entries: list[AuditEntry], limit: int) -> Self:
        last = str(entries[-1].id) if len(entries) == limit else None
        return cls(entries=[AuditAnswer.of(entry) for entry in entries], next=last)


class CheckAnswer(Shown):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    hint: str


class ReconcilerAnswer(Shown):
    """What became of one of the leader's reconcilers: how often it ran, how much it did, what that took in all."""

    name: str
    runs: int
    done: int
    failures: int
    seconds: float
    ran_at: datetime | None
    is_failing: bool
    trouble: str | None
    trouble_at: datetime | None


class HealthAnswer(BaseModel):
    """Everything that was looked at."""

    ok: bool
    checks: list[CheckAnswer]
    reconcilers: list[ReconcilerAnswer]

    @classmethod
    def of(cls, health: Health) -> Self:
        checks = [CheckAnswer.of(check) for check in health.checks]
        reconcilers = [ReconcilerAnswer.of(each) for each in health.reconcilers]
        return cls(ok=bool(health), checks=checks, reconcilers=reconcilers)


class Alive(BaseModel):
    """Yes."""

    status: str
