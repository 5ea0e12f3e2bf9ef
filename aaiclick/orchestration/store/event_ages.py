"""Events that are too old to be kept."""

from __future__ import annotations

from datetime import timedelta
from itertools import takewhile
from typing import Any

from sqlalchemy import delete, func, select

from aaiclick.orchestration.store.metrics import HORIZON
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, metrics

STEP = 5_000
"""Events that one transaction removes."""


async def prune_events(session: Session, ttl_s: float) -> int:
    """Remove the oldest events that are older than this; gives how many.

    None that the metrics have not counted for good, and never the newest: whoever comes again with its id is not of
    another database, and SQLite counts on from it.
    """
    newest = select(func.max(events.c.id)).scalar_subquery()
    horizon = select(metrics.c.number).where(metrics.c.name == HORIZON[0]).scalar_subquery()
    oldest = select(events.c.at).order_by(events.c.id).limit(1).scalar_subquery()
    row: Any = await session.first(select(newest, horizon, oldest, session.dialect.now()))
    newest_id, counted, oldest_at, now = row
    limit = now - timedelta(seconds=ttl_s)
    if oldest_at is None or oldest_at >= limit or not counted:
        return 0
    may_go = events.c.id <= min(counted, newest_id - 1)
    first = await session.rows(select(events.c.id, events.c.at).where(may_go).order_by(events.c.id).limit(STEP))
    old = [each.id for each in takewhile(lambda each: each.at < limit, first)]
    return await session.run(delete(events).where(events.c.id <= old[-1])) if old else 0
