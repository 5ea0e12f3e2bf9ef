"""Pages of the event feed. A page ends before a gap in the ids that a late commit may still fill.

A database with one writer at a time has no such gaps: ids are given in the order of the commits.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select

from aaiclick.orchestration.models import Event
from aaiclick.orchestration.rules.settled_events import settled
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events

LAST = 1_000


class FeedPage(NamedTuple):
    """Events, and the cursor: the id after which the next page begins."""

    events: list[Event]
    cursor: int


async def newest(session: Session) -> int:
    """Return the id of the newest event; 0 if there is none."""
    return int(await session.scalar(select(func.max(events.c.id))) or 0)


async def newest_settled(session: Session) -> int:
    """Return the newest id from which a reader can follow the feed without missing an event; 0 if there is none.

    Ids are given before the commit, so an event that commits later may have a lower id than the newest. Only the last
    LAST events are searched for such gaps; older gaps count as settled.
    """
    last = select(events.c.id, events.c.at).order_by(events.c.id.desc()).limit(LAST)
    rows = (await session.rows(last))[::-1]
    if not rows:
        return 0
    if session.dialect.one_writer:
        return int(rows[-1].id)
    first, *later = rows
    count = settled(((row.id, row.at) for row in later), first.id, await session.now())
    return int(rows[count].id)


async def read_page(session: Session, after: int, limit: int, job_id: int | None) -> FeedPage:
    """Return events after an id, up to the first gap that may still be filled.

    `limit` counts the events of all jobs; with `job_id`, the page has only those of that job.
    """
    rows = await session.rows(select(events).where(events.c.id > after).order_by(events.c.id).limit(limit))
    if not rows:
        return FeedPage([], after)
    told = rows
    if not session.dialect.one_writer:
        told = rows[: settled(((row.id, row.at) for row in rows), after, await session.now())]
    chosen = [Event.from_row(row) for row in told if job_id is None or row.job_id == job_id]
    return FeedPage(chosen, told[-1].id if told else after)


async def read_job_page(session: Session, job_id: int, after: int, limit: int, *, last: bool) -> list[Event]:
    """Return the first events of one job after an id, or the last ones with `last`, in the order of their ids.

    Gaps are not considered: an event that commits later may have a lower id.
    """
    choice = select(events).where(events.c.job_id == job_id, events.c.id > after).limit(limit)
    rows = await session.rows(choice.order_by(events.c.id.desc() if last else events.c.id))
    found = [Event.from_row(row) for row in rows]
    return found[::-1] if last else found
