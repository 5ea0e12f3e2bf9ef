"""Reading the `events` table from an id on, for clients that follow it: streams of the server, open pages.

Ids are assigned before their transactions commit, so an event may appear after events with larger ids.
"""

from __future__ import annotations

from aaiclick.errors import InputError
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models import Event
from aaiclick.orchestration.rules.validation import check_id, check_paging
from aaiclick.orchestration.store.reading import event_feed as store
from aaiclick.orchestration.store.reading.event_feed import FeedPage


async def newest_event() -> int:
    """Return the largest event id, 0 if there is none. An open transaction may still commit smaller ids."""
    async with connected() as database:
        return await database.read(store.newest)


async def settled_event() -> int:
    """Return an id such that every event committed from now on has a larger one.

    Some events that are committed already have larger ids too: a reader that starts here sees them as well.
    """
    async with connected() as database:
        return await database.read(store.newest_settled)


def refuse_future(after: int, newest: int, field: str) -> int:
    """Return `after`; raise InputError if it is larger than the newest id: a reader there would miss events."""
    if after > newest:
        rule = f"it must be at most {newest}, the id of the newest event"
        hint = (
            "The id is from another database, or this one was restored: read all events again, and continue from there."
        )
        raise InputError(field=field, value=after, rule=rule, hint=hint)
    return after


async def read_feed(after: int = 0, *, job_id: int | None = None, limit: int | None = None) -> FeedPage:
    """Return the events with ids above `after`, and the cursor for the next call.

    The page stops at a gap that an open transaction may still fill, so it may be short or empty.
    """
    start = 0 if after == 0 else check_id(after, "after")
    wanted = None if job_id is None else check_id(job_id, "job id")
    count, _ = check_paging(limit)
    async with connected() as database:
        return await database.read(lambda session: store.read_page(session, start, count, wanted))


async def read_job_events(job_id: int, after: int = 0, *, limit: int | None = None, last: bool = False) -> list[Event]:
    """Return events of one job with ids above `after`, in the order of their ids; with `last`, the last `limit` ones.

    These are all events committed by now. A caller that continues after the last id may miss an event with a smaller
    id that is committed late. To follow a job, use `read_feed`.
    """
    start = 0 if after == 0 else check_id(after, "after")
    wanted, (count, _) = check_id(job_id, "job id"), check_paging(limit)
    async with connected() as database:
        return await database.read(lambda session: store.read_job_page(session, wanted, start, count, last=last))
