"""What there is to do for whoever leads, in one question."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, exists, func, literal, select

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.rules.states import ENDED_JOB, JobStatus
from aaiclick.orchestration.store import schedules, table_drops
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, delayed, jobs, ripples, workers


class Chores(NamedTuple):
    """Whether there is some of each."""

    sessions: bool
    """Sessions whose time is up."""
    orphans: bool
    """Claims whose session is not live."""
    ripples: bool
    """Endings that were not told downstream yet."""
    limits: bool
    """Jobs with a time limit that run."""
    reserved: bool
    """Jobs that someone keeps for himself."""
    strays: bool
    """References to tables of runs whose worker is gone."""
    tables: bool
    """Tables to look at, or to drop."""
    schedules: bool
    """Schedules whose time has come, times that wait for an earlier run, backfills."""
    due_s: float | None
    """How long until the next delayed task is due."""
    fire_s: float | None = None
    """How long until the next schedule fires."""


async def look_for_chores(session: Session) -> Chores:
    """One statement, whatever there is to do."""
    now = session.dialect.now()
    stopped = workers.c.status == WorkerStatus.STOPPED
    held_by_nobody = ~exists().where(workers.c.id == claims.c.worker_id, ~stopped)
    open_jobs = jobs.c.status.in_(sorted(set(JobStatus) - ENDED_JOB))
    questions: list[ColumnElement[bool]] = [
        exists().where(~stopped, workers.c.expires_at < now),
        exists(select(literal(1)).select_from(claims).where(held_by_nobody)),
        exists(select(literal(1)).select_from(ripples)),
        exists().where(jobs.c.status == JobStatus.RUNNING, jobs.c.timeout_s.is_not(None)),
        exists().where(open_jobs, jobs.c.reserved_for != 0, jobs.c.open_tasks > 0),
        *table_drops.questions(),
        schedules.question(),
    ]
    next_due = select(func.min(delayed.c.run_after)).scalar_subquery()
    row: Any = await session.first(select(*questions, next_due, schedules.next_time(), now))
    *found, due, fires, moment = row
    sessions, orphans, left, limits, reserved, strays, loose, waiting = map(bool, found)
    due_s, fire_s = _seconds_to(due, moment), _seconds_to(fires, moment)
    return Chores(
        sessions, orphans, left, limits, reserved, strays, loose, waiting or fire_s == 0, due_s=due_s, fire_s=fire_s
    )


def _seconds_to(then: datetime | None, now: datetime) -> float | None:
    return None if then is None else max(0.0, (then - now).total_seconds())
