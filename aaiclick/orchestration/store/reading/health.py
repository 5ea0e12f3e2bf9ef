"""Questions about the state as a whole, answered by the database's time. None takes longer for a long queue."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, exists, func, or_, select

from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.store.leases.leader_terms import CONTROL
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, delayed, ready, tasks, terms, workers

COUNTED_MAX = 1000
"""Enough to see that there are many."""


class Stale(NamedTuple):
    """Claims that nobody works on: at least so many, the oldest made so long ago."""

    number: int
    oldest_s: float


class Stuck(NamedTuple):
    """Live workers that have results which they could not report for a while, and the one that has for longest."""

    number: int
    worker_id: int
    hostname: str
    longest_s: int


class LeaderState(NamedTuple):
    """Who leads, or led last; not any more if nothing is left of the term."""

    holder: int
    term: int
    left_s: float


def takes_tasks() -> ColumnElement[bool]:
    """Whether a worker takes tasks of any job; a `job_test` has no slots, and takes none but its own."""
    return workers.c.concurrency > 0


async def count_live_workers(session: Session) -> int:
    """Sessions that are not over, of workers that take tasks."""
    now = await session.now()
    live = select(workers.c.id).where(workers.c.status != WorkerStatus.STOPPED, workers.c.expires_at > now)
    return await _count(session, live.where(takes_tasks()))


async def stuck_workers(session: Session, *, grace_s: float) -> Stuck | None:
    """Live workers that could not report for so long; None if there are none."""
    now = await session.now()
    live = (workers.c.status != WorkerStatus.STOPPED, workers.c.expires_at > now, workers.c.unreported_s >= grace_s)
    columns = (workers.c.id, workers.c.hostname, workers.c.unreported_s)
    rows = await session.rows(
        select(*columns).where(*live).order_by(workers.c.unreported_s.desc(), workers.c.id).limit(COUNTED_MAX)
    )
    if not rows:
        return None
    worst = rows[0]
    return Stuck(len(rows), worst.id, worst.hostname, worst.unreported_s)


async def count_slots(session: Session) -> int:
    """How many bodies the live workers run at a time; those that drain take no more."""
    now = await session.now()
    slots = select(func.coalesce(func.sum(workers.c.concurrency), 0))
    return int(
        await session.scalar(
            slots.where(takes_tasks(), workers.c.status == WorkerStatus.ACTIVE, workers.c.expires_at > now)
        )
    )


async def has_work(session: Session) -> bool:
    """Whether a task is ready, or claimed, or runs."""
    return bool(await session.scalar(select(or_(exists(select(ready.c.task_id)), exists(select(claims.c.task_id))))))


async def count_overdue(session: Session, *, grace_s: float) -> int:
    """Delayed tasks that should have been ready for so long."""
    limit = await session.now() - timedelta(seconds=grace_s)
    return await _count(session, select(delayed.c.task_id).where(delayed.c.run_after <= limit))


async def stale_claims(session: Session, *, grace_s: float) -> Stale:
    """Claims of workers whose session has been over for so long."""
    now = await session.now()
    over = or_(workers.c.id.is_(None), workers.c.expires_at <= now - timedelta(seconds=grace_s))
    found = (
        select(tasks.c.claimed_at)
        .select_from(claims)
        .outerjoin(workers, workers.c.id == claims.c.worker_id)
        .outerjoin(tasks, tasks.c.id == claims.c.task_id)
        .where(over)
        .limit(COUNTED_MAX)
        .subquery()
    )
    (row,) = await session.rows(select(func.count(), func.min(found.c.claimed_at)).select_from(found))
    number, oldest = tuple(row)
    return Stale(number, 0.0 if oldest is None else (now - oldest).total_seconds())


async def leader(session: Session) -> LeaderState | None:
    """Who holds the newest term of the control loop; None if nobody ever did."""
    now = await session.now()
    row = await session.first(select(terms.c.holder, terms.c.term, terms.c.expires_at).where(terms.c.role == CONTROL))
    return None if row is None else LeaderState(row.holder, row.term, (row.expires_at - now).total_seconds())


async def _count(session: Session, rows: Select[tuple[int]]) -> int:
    return int(await session.scalar(select(func.count()).select_from(rows.limit(COUNTED_MAX).subquery())))
