"""Time limits of jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Row, Select, select

from aaiclick.orchestration.rules.states import JobStatus
from aaiclick.orchestration.store.moves.early_endings import end_job, lock_graph
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs


async def fail_overdue_jobs(session: Session, job_id: int | None = None) -> list[int]:
    """Fail one running job that has exceeded its time limit, with its open tasks; return its id in a list, or [].

    The time runs from the job's first claim, and anew from a clear after the job's end. One job per transaction: the
    caller repeats this until nothing is overdue. With `job_id`, only this job is looked at.
    """
    running = _limited(session).where(jobs.c.status == JobStatus.RUNNING)
    if job_id is not None:
        running = running.where(jobs.c.id == job_id)
    for job in await session.rows(running):
        if _is_overdue(job) and await _fail(session, job.id):
            return [job.id]
    return []


def _limited(session: Session) -> Select[Any]:
    """Select the jobs that have a time limit, with the database's time."""
    columns = (jobs.c.id, jobs.c.status, jobs.c.started_at, jobs.c.timeout_s, session.dialect.now().label("now"))
    return select(*columns).where(jobs.c.timeout_s.is_not(None)).order_by(jobs.c.id)


def _is_overdue(job: Row[Any]) -> bool:
    limit_s: float = job.timeout_s
    if job.status != JobStatus.RUNNING or job.started_at is None:
        return False
    lasted: timedelta = job.now - job.started_at
    return lasted.total_seconds() >= limit_s


async def _fail(session: Session, job_id: int) -> bool:
    """Fail the job if it is still overdue under the graph's lock: it may have ended or been cleared meanwhile."""
    await lock_graph(session, job_id)
    job = await session.first(_limited(session).where(jobs.c.id == job_id))
    if job is None or not _is_overdue(job):
        return False
    error = f"JobTimeout: The job ran longer than its limit of {job.timeout_s:g} s."
    return await end_job(session, job_id, "fail", error)
