"""Events from a place on, in the order of their ids, whatever the order of their commits."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import insert

from aaiclick.errors import InputError
from aaiclick.orchestration import cancel_job, create_job, get_events_for_job
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.queries.event_feed import newest_event, read_feed, read_job_events, settled_event
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]


async def note(session: Session) -> None:
    row = {"job_id": 1, "move": "create", "status": "pending", "at": await session.now()}
    await session.run(insert(events).values(**row))


async def test_pages_join_without_gaps(state: str) -> None:
    job = await create_job("x", flows.add, kwargs={"a": 1, "b": 2})
    await cancel_job(job.id)
    stored = await get_events_for_job(job.id)
    place, seen = stored[0].id - 1, []
    while (page := await read_feed(place, limit=1)).events:
        seen += page.events
        place = page.cursor
    assert seen == stored
    assert place == await newest_event() == await settled_event() == stored[-1].id
    assert (await read_feed(stored[0].id - 1, job_id=job.id + 1)).cursor == place


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_an_event_that_commits_later_is_not_left_out(state: str) -> None:
    """Its id is smaller than that of one that was committed before it (RULINGS of events)."""
    async with connected() as database:
        database = database
        await database.transact(note)
        start = await newest_event()
        inserted, go_on = asyncio.Event(), asyncio.Event()

        async def slow(session: Session) -> None:
            await note(session)
            inserted.set()
            await go_on.wait()

        late = asyncio.create_task(database.transact(slow))
        await inserted.wait()
        await database.transact(note)
        assert await newest_event() == start + 2
        assert await read_feed(start) == ([], start)
        assert await settled_event() == start  # whoever begins to listen now hears of both
        go_on.set()
        await late
        page = await read_feed(start)
        assert ([event.id for event in page.events], page.cursor) == ([start + 1, start + 2], start + 2)


@pytest.mark.parametrize("after", [-1, 2**63, True, "1"])
async def test_a_place_that_is_none(local: None, after: int) -> None:
    with pytest.raises(InputError):
        await read_feed(after)


async def test_nothing_has_happened(local: None) -> None:
    assert (await newest_event(), await settled_event()) == (0, 0)
    assert await read_feed() == ([], 0)


async def test_the_first_and_the_last_events_of_a_job(state: str) -> None:
    job = await create_job("x", flows.add, kwargs={"a": 1, "b": 2})
    await create_job("y", flows.add, kwargs={"a": 1, "b": 2})
    await cancel_job(job.id)
    stored = await get_events_for_job(job.id)
    first = await read_job_events(job.id, limit=1)
    assert first + await read_job_events(job.id, first[0].id) == stored
    assert await read_job_events(job.id, limit=1, last=True) == stored[-1:]
    assert await read_job_events(job.id, last=True) == stored
