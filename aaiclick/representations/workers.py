"""Workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, Time, facts_of, next_id

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Worker


class WorkerAnswer(TypedDict):
    """A worker with its session."""

    id: Id
    name: str | None
    hostname: str
    pid: int
    status: str
    concurrency: int
    node_id: Id | None
    cordoned: bool
    tasks_completed: int
    tasks_failed: int
    started_at: Time
    last_heartbeat: Time
    expires_at: Time


class WorkerPage(TypedDict):
    """Workers, newest first. `next` is the `before` of the next page; null on the last page."""

    workers: list[WorkerAnswer]
    next: Id | None


class Asked(TypedDict):
    """False if the worker's session was over already."""

    asked: bool


def worker_answer(worker: Worker) -> WorkerAnswer:
    """Return a worker as JSON data."""
    return facts_of(WorkerAnswer, worker)


def worker_page(workers: Sequence[Worker], limit: int | None) -> WorkerPage:
    """Return a page of workers."""
    return WorkerPage(workers=[worker_answer(worker) for worker in workers], next=next_id(workers, limit))
