"""Servers, workers and the database on hosts of their own; the network between them is cut, or loses one direction.

The hosts are network namespaces. What bodies write of when they were alive says whether two of a task ever ran at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.models import Job
from tests.support.apart import Apart, apart
from tests.support.fleet import Fleet, Member, eventually, fleet, servers_only
from tests.support.witness import begun_elsewhere, overlaps

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
