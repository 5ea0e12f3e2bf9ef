"""What there is to do for whoever leads, in one question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, exists, func, literal, select

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.rules.states import ENDED_JOB, JobStatus
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.schedules import firing
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, delayed, jobs, ripples, workers


@dataclass(frozen=True, slots=True)
class Question:
    """What one reconciler asks of the state: whether there is something to do now, when there will be, or both."""

    is_there: Callable[[Dialect], ColumnElement[bool]] | None = None
    next_at: Callable[[], ScalarSelect[Any]] | None = None


def _expired_sessions(dialect: Dialect) -> ColumnElement[bool]:
    return exists().where(workers.c.status != WorkerStatus.STOPPED, workers.c.expires_at < dialect.now())


def _claims_of_nobody(_: Dialect) -> ColumnElement[bool]:
    held = exists().where(workers.c.id == claims.c.worker_id, workers.c.status != WorkerStatus.STOPPED)
    return exists(select(literal(1)).select_from(claims).where(~held))


def _some_ripples(_: Dialect) -> ColumnElement[bool]:
    return exists(select(literal(1)).select_from(ripples))


def _limited_jobs(_: Dialect) -> ColumnElement[bool]:
    return exists().where(jobs.c.status == JobStatus.RUNNING, jobs.c.timeout_s.is_not(None))


def _reserved_jobs(_: Dialect) -> ColumnElement[bool]:
    open_jobs = jobs.c.status.in_(sorted(set(JobStatus) - ENDED_JOB))
    return exists().where(open_jobs, jobs.c.reserved_for != 0, jobs.c.open_tasks > 0)


def _next_delayed() -> ScalarSelect[Any]:
    return select(func.min(delayed.c.run_after)).scalar_subquery()


EXPIRED_SESSIONS = Question(_expired_sessions)
"""Sessions whose time is up."""

CLAIMS_OF_NOBODY = Question(_claims_of_nobody)
"""Claims whose session is not live."""

RIPPLES = Question(_some_ripples)
"""Endings that were not told downstream yet."""

LIMITED_JOBS = Question(_limited_jobs)
"""Jobs with a time limit that run."""

RESERVED_JOBS = Question(_reserved_jobs)
"""Jobs that someone keeps for himself."""

DELAYED_TASKS = Question(next_at=_next_delayed)
"""Tasks that wait for their time."""

SCHEDULES = Question(lambda _: firing.question(), firing.next_time)
"""Schedules whose time has come, times that wait for an earlier run, backfills."""

STRAYS = Question(lambda _: table_drops.strays())
"""References to tables of runs whose worker is gone."""

LOOSE_TABLES = Question(lambda _: table_drops.loose_tables())
"""Tables to look at, or to drop."""


async def look_for_work(session: Session, questions: Mapping[str, Question]) -> dict[str, float]:
    """Ask all of it in one statement; gives in how many seconds there is something to do, by the names of those that
    know of something: 0 for now."""
    dialect = session.dialect
    there = {name: asked.is_there(dialect) for name, asked in questions.items() if asked.is_there is not None}
    times = {name: asked.next_at() for name, asked in questions.items() if asked.next_at is not None}
    row: Any = await session.first(select(*there.values(), *times.values(), dialect.now()))
    *found, moment = row
    found_there = dict(zip(there, found[: len(there)], strict=True))
    found_times = dict(zip(times, found[len(there) :], strict=True))
    due = {name: _seconds_to(then, moment) for name, then in found_times.items() if then is not None}
    return due | {name: 0.0 for name, is_there in found_there.items() if is_there}


def _seconds_to(then: datetime, now: datetime) -> float:
    return max(0.0, (then - now).total_seconds())
