"""Retention of events, and of the runs of tasks that a clear removed from their graph."""

from __future__ import annotations

from datetime import timedelta
from itertools import takewhile
from typing import Any

from sqlalchemy import delete, exists, func, select

from aaiclick.orchestration.store.reading.metrics import HORIZON
from aaiclick.orchestration.store.retention.job_remains import runs_of
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, metrics, runs, tasks

STEP = 5_000
"""Events that one transaction deletes, at most."""


REMOVED = "remove"
"""The move of a task that a clear removed from its graph. The task's row is gone; the rows of its runs are left."""


async def prune_events(session: Session, ttl_s: float) -> int:
    """Delete the oldest events that are older than `ttl_s`; return how many.

    Events above the horizon of the metrics stay. The newest event stays too: a reader that returns with its id must not
    be taken for a reader of another database, and SQLite continues its ids from it. The runs of tasks that a clear
    removed are deleted with the event that tells of the removal.
    """
    last = await _last_old(session, ttl_s)
    if last is None:
        return 0
    if removed := await _removed(session, last):
        await session.run(delete(runs).where(session.any_of(runs.c.task_id, removed)))
    return await session.run(delete(events).where(events.c.id <= last))


async def runs_that_go(session: Session, ttl_s: float) -> list[tuple[int, int]]:
    """Return (task, epoch) of the runs that the next `prune_events` deletes; the caller removes their logs first."""
    last = await _last_old(session, ttl_s)
    return [] if last is None else await runs_of(session, await _removed(session, last))


async def count_old(session: Session, ttl_s: float) -> int:
    """Return how many events `prune_events` could delete in all."""
    limit = await session.now() - timedelta(seconds=ttl_s)
    newest = select(func.max(events.c.id)).scalar_subquery()
    horizon = select(metrics.c.number).where(metrics.c.name == HORIZON[0]).scalar_subquery()
    may_go = [events.c.at < limit, events.c.id <= horizon, events.c.id < newest]
    young = await session.scalar(select(func.min(events.c.id)).where(events.c.at >= limit))
    if young is not None:
        may_go.append(events.c.id < young)
    return int(await session.scalar(select(func.count()).select_from(events).where(*may_go)))


async def _last_old(session: Session, ttl_s: float) -> int | None:
    """Return the id of the last event that the next step deletes; None if none may be deleted."""
    newest = select(func.max(events.c.id)).scalar_subquery()
    horizon = select(metrics.c.number).where(metrics.c.name == HORIZON[0]).scalar_subquery()
    oldest = select(events.c.at).order_by(events.c.id).limit(1).scalar_subquery()
    row: Any = await session.first(select(newest, horizon, oldest, session.dialect.now()))
    newest_id, counted, oldest_at, now = row
    limit = now - timedelta(seconds=ttl_s)
    if oldest_at is None or oldest_at >= limit or not counted:
        return None
    may_go = events.c.id <= min(counted, newest_id - 1)
    first = await session.rows(select(events.c.id, events.c.at).where(may_go).order_by(events.c.id).limit(STEP))
    old: list[int] = [each.id for each in takewhile(lambda each: each.at < limit, first)]
    return old[-1] if old else None


async def _removed(session: Session, last: int) -> list[int]:
    """Return the tasks that an event up to `last` reports as removed, and that have no row any more."""
    said = (events.c.id <= last, events.c.move == REMOVED, ~exists().where(tasks.c.id == events.c.task_id))
    rows = await session.rows(select(events.c.task_id).where(*said).distinct())
    return sorted(row.task_id for row in rows if row.task_id is not None)
