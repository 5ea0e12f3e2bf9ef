"""Dead letters: the failed tasks of all jobs."""

from __future__ import annotations

from sqlalchemy import or_, select

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, tasks

JOBS_AT_ONCE = 100


async def list_dead_letters(
    session: Session, before: tuple[int, int] | None, limit: int, only_job: int | None = None
) -> list[Task]:
    """Return up to `limit` failed tasks, those of the newest jobs first; `before` is (job, task) of the last one shown.

    Tasks have no index by status, so they are found through jobs with failed tasks. The jobs are a query of their own:
    for a join of both, MariaDB would read all tasks.
    """
    found: list[Task] = []
    last = None if before is None else before[0]
    while len(found) < limit:
        ids = await _jobs_with_failures(session, last, only_job)
        if not ids:
            break
        choice = (
            select(tasks)
            .where(session.any_of(tasks.c.job_id, ids), tasks.c.status == TaskStatus.FAILED)
            .order_by(tasks.c.job_id.desc(), tasks.c.id.desc())
            .limit(limit - len(found))
        )
        if before is not None:
            choice = choice.where(or_(tasks.c.job_id < before[0], tasks.c.id < before[1]))
        found += [Task.from_row(row) for row in await session.rows(choice)]
        last = ids[-1] - 1
    return found


async def _jobs_with_failures(session: Session, last: int | None, only_job: int | None) -> list[int]:
    """Return up to JOBS_AT_ONCE jobs with failed tasks, highest id first, from id `last` downwards."""
    choice = select(jobs.c.id).where(jobs.c.failed_tasks > 0).order_by(jobs.c.id.desc()).limit(JOBS_AT_ONCE)
    if only_job is not None:
        choice = choice.where(jobs.c.id == only_job)
    if last is not None:
        choice = choice.where(jobs.c.id <= last)
    return [row.id for row in await session.rows(choice)]
