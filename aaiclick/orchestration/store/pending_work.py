"""The reconcilers' questions about pending work, and the one statement that asks all of them for the leader.

`control/reconcilers` says which reconciler has which question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, exists, func, literal, select

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.rules.states import ENDED_JOB, JobStatus
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.resources import holders
from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.schedules import firing
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, delayed, jobs, ripples, workers


@dataclass(frozen=True, slots=True)
class Question:
    """What one reconciler asks: whether there is work now (`is_there`), when there will be (`next_at`), or both."""

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
"""Sessions past their end that were not ended yet."""

CLAIMS_OF_NOBODY = Question(_claims_of_nobody)
"""Claims whose worker is unknown, or whose session has ended."""

RIPPLES = Question(_some_ripples)
"""Ripples that were left for later transactions."""

LIMITED_JOBS = Question(_limited_jobs)
"""Running jobs with a time limit, whether it has passed or not."""

RESERVED_JOBS = Question(_reserved_jobs)
"""Open jobs that are reserved for a worker, as by `job_test`."""

DELAYED_TASKS = Question(next_at=_next_delayed)
"""Tasks that wait for their `run_after`."""

SCHEDULES = Question(lambda _: firing.question(), firing.next_time)
"""Schedules that are due, times that wait for an earlier run, backfills."""

STRAYS = Question(lambda _: table_drops.strays())
"""References to tables that belong to runs whose worker is gone."""

STRAY_GRANTS = Question(lambda _: holders.strays())
"""Resources held by runs whose worker is gone."""

LOOSE_TABLES = Question(lambda _: table_drops.loose_tables())
"""Tables that may have to be dropped, or are being dropped."""


async def look_for_work(session: Session, questions: Mapping[str, Question]) -> dict[str, float]:
    """Ask all questions in one statement; return, by name, the seconds until there is work: 0 for now.

    Questions that know of no work are left out.
    """
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
