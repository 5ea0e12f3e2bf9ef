"""Expectations (`expect`) of tasks that their data did not meet, read from the `events` table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.states import UNMET
from aaiclick.orchestration.rules.validation import check_id, check_paging
from aaiclick.orchestration.store.claims.expectations import read_unmet
from aaiclick.orchestration.store.reading import jobs as store
from aaiclick.orchestration.store.session import Session

SHOWN = 20


class Unmet(NamedTuple):
    """An expectation that was not met in the run (`task_id`, `epoch`)."""

    task_id: int
    epoch: int
    outcome: str
    """`failed`, or `warned`."""
    line: str
    """What was expected and what was found."""
    at: datetime


async def list_job_expectations(job_id: int, limit: int = SHOWN) -> list[Unmet]:
    """Return the newest `limit` unmet expectations of a job's tasks, the oldest of these first."""
    wanted, (count, _) = check_id(job_id, "job id"), check_paging(limit)
    async with connected() as database:
        return _told(await database.read(lambda session: read_unmet(session, wanted, None, count)))


async def list_task_expectations(task_id: int, limit: int = SHOWN) -> list[Unmet]:
    """Return the newest `limit` unmet expectations of a task in all of its runs, the oldest of these first.

    The list is empty if there is no such task.
    """
    wanted, (count, _) = check_id(task_id, "task id"), check_paging(limit)

    async def work(session: Session) -> Sequence[Any]:
        task = await store.get_task(session, wanted)
        return [] if task is None or task.job_id is None else await read_unmet(session, task.job_id, wanted, count)

    async with connected() as database:
        return _told(await database.read(work))


def _told(rows: Sequence[Any]) -> list[Unmet]:
    return [Unmet(row.task_id, row.epoch, UNMET[row.move], row.detail or "", row.at) for row in rows]
