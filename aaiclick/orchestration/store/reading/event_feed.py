"""Events in the order in which they may be told."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select

from aaiclick.orchestration.models import Event
from aaiclick.orchestration.rules.settled_events import settled
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events

LAST = 1_000


class FeedPage(NamedTuple):
    """Events, and the id after which the next page begins."""

    events: list[Event]
    cursor: int


async def newest(session: Session) -> int:
    """The id of the newest event; 0 if there is none."""
    return int(await session.scalar(select(func.max(events.c.id))) or 0)


async def newest_settled(session: Session) -> int:
    """The newest event behind which all is yet to come: one that is committed late may have an earlier id than newest.

    Found among the last events: what more of them happen in the time of a commit is not looked through.
    """
    last = select(events.c.id, events.c.at).order_by(events.c.id.desc()).limit(LAST)
    rows = (await session.rows(last))[::-1]
    if not rows:
        return 0
    first, *later = rows
    count = settled(((row.id, row.at) for row in later), first.id, await session.now())
    return int(rows[count].id)


async def read_page(session: Session, after: int, limit: int, job_id: int | None) -> FeedPage:
    """The events after an id, up to the first gap that may still be filled."""
    rows = await session.rows(select(events).where(events.c.id > after).order_by(events.c.id).limit(limit))
    if not rows:
        return FeedPage([], after)
    count = settled(((row.id, row.at) for row in rows), after, await session.now())
    told = rows[:count]
    chosen = [Event.from_row(row) for row in told if job_id is None or row.job_id == job_id]
    return FeedPage(chosen, told[-1].id if told else after)


async def read_job_page(session: Session, job_id: int, after: int, limit: int, *, last: bool) -> list[Event]:
    """The first or the last events of one job after an id, in order, as they are committed by now."""
    choice = select(events).where(events.c.job_id == job_id, events.c.id > after).limit(limit)
    rows = await session.rows(choice.order_by(events.c.id.desc() if last else events.c.id))
    found = [Event.from_row(row) for row in rows]
    return found[::-1] if last else found
