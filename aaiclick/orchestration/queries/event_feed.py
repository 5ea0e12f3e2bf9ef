"""What happens, as it happens: events from a place on, for pages that stay open."""

from __future__ import annotations

from aaiclick.errors import InputError
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models import Event
from aaiclick.orchestration.rules.validation import check_id, check_paging
from aaiclick.orchestration.store.reading import event_feed as store
from aaiclick.orchestration.store.reading.event_feed import FeedPage


async def newest_event() -> int:
    """The id of the newest event; what was begun before it, and is committed later, has an earlier one."""
    async with connected() as database:
        return await database.read(store.newest)


async def settled_event() -> int:
    """The id after which all that is committed from now on comes; also some of what was just before."""
    async with connected() as database:
        return await database.read(store.newest_settled)


def refuse_future(after: int, newest: int, field: str) -> int:
    """Refuse a place beyond the newest event: whoever waits there would hear nothing, or what comes in between."""
    if after > newest:
        rule = f"at most {newest}, the id of the newest event"
        hint = "It is of another database, or this one was restored: read everything anew, and go on from there."
        raise InputError(field=field, value=after, rule=rule, hint=hint)
    return after


async def read_feed(after: int = 0, *, job_id: int | None = None, limit: int | None = None) -> FeedPage:
    """The events after this one, and where to go on; few or none while earlier ones may still come."""
    start = 0 if after == 0 else check_id(after, "after")
    wanted = None if job_id is None else check_id(job_id, "job id")
    count, _ = check_paging(limit)
    async with connected() as database:
        return await database.read(lambda session: store.read_page(session, start, count, wanted))


async def read_job_events(job_id: int, after: int = 0, *, limit: int | None = None, last: bool = False) -> list[Event]:
    """Events of one job after this one, in order; with `last` those at its end.

    All that are committed by now: whoever goes on after the last may miss one that an earlier transaction commits late.
    To follow what happens, use `read_feed`.
    """
    start = 0 if after == 0 else check_id(after, "after")
    wanted, (count, _) = check_id(job_id, "job id"), check_paging(limit)
    async with connected() as database:
        return await database.read(lambda session: store.read_job_page(session, wanted, start, count, last=last))
