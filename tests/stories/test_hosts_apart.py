"""Servers, workers and the database on hosts of their own; the network between them is cut, or loses one direction.

The hosts are network namespaces. What bodies write of when they were alive says whether two of a task ever ran at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aaiclick.orchestration.models import Job
from tests.support.apart import Apart, apart
from tests.support.fleet import Fleet, Member, eventually, fleet, servers_only
from tests.support.witness import begun_elsewhere, lives, overlaps

__all__ = ["fleet"]

pytestmark = pytest.mark.timeout(900)

SESSION_S = "6"
PATIENCE_S = 240.0  # a connection that is lost in silence is noticed after a minute
CALM_S = "60"  # the session of those that must keep it, on a busy machine too


@pytest.fixture
async def there(fleet: Fleet, hosts_there: None) -> AsyncIterator[Apart]:
    fleet.env |= {"AAICLICK_SESSION_SECONDS": SESSION_S, "AAICLICK_LOSSES_MAX": "1000"}
    async with apart(fleet) as made:
        yield made


async def two_workers(there: Apart, *servers: Member) -> tuple[Member, Job]:
    """One that has begun two bodies, and another that could run them."""
    fleet = there.fleet
    first = await there.worker(*servers)
    job = await fleet.submit(fleet.errand("ticks"), fleet.errand("ticks_async"))
    await fleet.noted("began", 2)
    await there.worker(*servers, AAICLICK_SESSION_SECONDS=CALM_S)
    return first, job


async def ends(fleet: Fleet, job: Job) -> None:
    """All complete; whatever was lost was nobody's failure, and at no time two bodies of a task ran."""
    assert overlaps(fleet, "ticks", "ticks_async") == []
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert overlaps(fleet, "ticks", "ticks_async") == []
    for row in (await fleet.tasks(job)).values():
        assert (row.crash_count, row.attempt) == (0, 0)


async def comes_back(fleet: Fleet, worker: Member, before: int) -> None:
    """It has another session than that one."""

    async def has() -> bool:
        assert worker.alive, worker.said()
        last = (await fleet.sessions(worker))[-1]
        return bool(last.id != before and last.status == "active")

    await eventually(has, fleet.explain, seconds=PATIENCE_S)


async def session_ends(fleet: Fleet, worker: Member) -> None:
    """Its session has been ended by whoever leads."""

    async def has() -> bool:
        return bool((await fleet.sessions(worker))[-1].status != "active")

    await eventually(has, fleet.explain, seconds=PATIENCE_S)


async def completes(fleet: Fleet, job: Job) -> None:
    async def has() -> bool:
        return (await fleet.job(job)).status == "completed"

    await eventually(has, fleet.explain, seconds=PATIENCE_S)


@servers_only
async def test_a_worker_that_is_cut_off_has_stopped_its_bodies_when_others_begin_them(there: Apart) -> None:
    server = await there.serve()
    first, job = await two_workers(there, server)
    session = await there.fleet.session_of(first)
    there.cut(first)
    await begun_elsewhere(there.fleet, "ticks", "ticks_async")
    assert first.alive
    there.mend(first)
    await comes_back(there.fleet, first, session)
    await ends(there.fleet, job)


@servers_only
@pytest.mark.long
@pytest.mark.parametrize("direction", ["up", "down"])
async def test_bodies_end_in_time_whichever_direction_is_lost(there: Apart, direction: str) -> None:
    """B5: nothing of the worker arrives; or all of it does, and no answer comes back."""
    server = await there.serve()
    first, job = await two_workers(there, server)
    session = await there.fleet.session_of(first)
    there.lose(*((first, server) if direction == "up" else (server, first)))
    await begun_elsewhere(there.fleet, "ticks", "ticks_async")
    assert first.alive
    there.network.restore()
    await comes_back(there.fleet, first, session)
    await ends(there.fleet, job)


@servers_only
@pytest.mark.long
async def test_a_server_without_its_database_holds_nobody_up_while_there_is_another(there: Apart) -> None:
    """Its workers turn to the other in time: no body is stopped. With its database it answers again, by itself."""
    fleet = there.fleet
    calm: dict[str, Any] = {"AAICLICK_SESSION_SECONDS": CALM_S}
    fleet.env |= calm
    deaf, other = await there.serve(), await there.serve()
    for _ in range(2):
        await there.worker(deaf, other)
    job = await fleet.submit(fleet.errand("ticks"), fleet.errand("ticks_async"))
    await fleet.noted("began", 2)
    there.part_from_database(deaf)
    for _ in range(3):
        quick = await fleet.submit(*fleet.quick(20))
        await completes(fleet, quick)
    there.network.restore()
    await there.worker(deaf)  # which registers there, and nowhere else
    await ends(fleet, job)
    assert {len(lives(fleet, name)) for name in ("ticks", "ticks_async")} == {1}
    assert {row.epoch for row in (await fleet.tasks(job)).values()} == {1}


@servers_only
@pytest.mark.long
async def test_the_only_server_without_its_database_comes_back_by_itself(there: Apart) -> None:
    """Bodies end before their sessions do; afterwards the same processes go on."""
    fleet = there.fleet
    server = await there.serve()
    first = await there.worker(server)
    session = await fleet.session_of(first)
    job = await fleet.submit(fleet.errand("ticks"), fleet.errand("ticks_async"))
    await fleet.noted("began", 2)
    there.part_from_database(server)
    await session_ends(fleet, first)
    there.network.restore()
    await comes_back(fleet, first, session)
    await begun_elsewhere(fleet, "ticks", "ticks_async")
    await ends(fleet, job)
    assert server.alive
