"""Queries for health checks, by the database's time. Counts are limited, so that a long queue costs no more."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, exists, func, or_, select

from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.store.leases.leader_terms import CONTROL
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, delayed, ready, tasks, terms, workers

COUNTED_MAX = 1000
"""Counts stop at this number."""


class Stale(NamedTuple):
    """Claims without a live worker: their number, at most COUNTED_MAX, and the age of the oldest in seconds."""

    number: int
    oldest_s: float


class Stuck(NamedTuple):
    """Live workers with overdue reports: their number, at most COUNTED_MAX, and the one that is overdue the longest."""

    number: int
    worker_id: int
    hostname: str
    longest_s: int


class LeaderState(NamedTuple):
    """The newest holder of the term; it leads no more if `left_s`, the seconds left of the term, is 0 or less."""

    holder: int
    term: int
    left_s: float


def takes_tasks() -> ColumnElement[bool]:
    """Return the condition that a worker takes tasks of any job.

    A `job_test` has a concurrency of 0, and takes only the tasks that are reserved for it.
    """
    return workers.c.concurrency > 0


async def count_live_workers(session: Session) -> int:
    """Return the number of live sessions of workers that take tasks, at most COUNTED_MAX."""
    now = await session.now()
    live = select(workers.c.id).where(workers.c.status != WorkerStatus.STOPPED, workers.c.expires_at > now)
    return await _count(session, live.where(takes_tasks()))


async def stuck_workers(session: Session, *, grace_s: float) -> Stuck | None:
    """Return the live workers that have owed a report for `grace_s` or longer; None if there are none."""
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
    """Return the sum of the slots of all live workers, without those that drain or are cordoned."""
    now = await session.now()
    slots = select(func.coalesce(func.sum(workers.c.concurrency), 0))
    return int(
        await session.scalar(
            slots.where(
                takes_tasks(),
                workers.c.status == WorkerStatus.ACTIVE,
                workers.c.cordoned.is_(False),
                workers.c.expires_at > now,
            )
        )
    )


async def has_work(session: Session) -> bool:
    """Return whether any task is ready, claimed or running."""
    return bool(await session.scalar(select(or_(exists(select(ready.c.task_id)), exists(select(claims.c.task_id))))))


async def count_overdue(session: Session, *, grace_s: float) -> int:
    """Return the number of delayed tasks that have been due for `grace_s` or longer, at most COUNTED_MAX."""
    limit = await session.now() - timedelta(seconds=grace_s)
    return await _count(session, select(delayed.c.task_id).where(delayed.c.run_after <= limit))


async def stale_claims(session: Session, *, grace_s: float) -> Stale:
    """Return the claims of workers whose session ended `grace_s` ago or earlier, or that have no row."""
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
    """Return the newest holder of the control loop's term; None if there was none yet."""
    now = await session.now()
    row = await session.first(select(terms.c.holder, terms.c.term, terms.c.expires_at).where(terms.c.role == CONTROL))
    return None if row is None else LeaderState(row.holder, row.term, (row.expires_at - now).total_seconds())


async def _count(session: Session, rows: Select[tuple[int]]) -> int:
    return int(await session.scalar(select(func.count()).select_from(rows.limit(COUNTED_MAX).subquery())))
