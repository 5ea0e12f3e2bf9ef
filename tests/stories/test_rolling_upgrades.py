"""Servers are restarted, killed, paused and upgraded, one after the other, while workers work: nothing fails."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from sqlalchemy import func, select

from aaiclick.orchestration.models import Job
from aaiclick.orchestration.store import tables
from tests.servers import haproxy
from tests.support.fleet import LONG, Fleet, Member, eventually, fleet, servers_only
from tests.support.releases import speaking
from tests.support.remote import Remote, free_port, remote_fleet

__all__ = ["fleet"]

pytestmark = [servers_only, pytest.mark.timeout(600)]

REFUSED = 2
"""The exit code of a worker that no server understands."""

BATCH = 50 if LONG else 10
ROUNDS = 3 if LONG else 1


@pytest.fixture
async def remote(fleet: Fleet) -> Remote:
    """Two servers on one database; nobody is taken for dead here."""
    fleet.env |= {"AAICLICK_SESSION_SECONDS": "60", "AAICLICK_SHUTDOWN_GRACE_SECONDS": "0.5"}
    remote = await remote_fleet(fleet)
    await remote.serve(free_port())
    return remote


@pytest.fixture
async def balanced(remote: Remote, haproxy_there: None) -> AsyncIterator[str]:
    """The address of both behind haproxy."""
    with ExitStack() as started:
        addresses = [address.removeprefix("http://") for address in remote.addresses]
        port = await asyncio.to_thread(started.enter_context, haproxy.server(addresses))
        yield f"http://127.0.0.1:{port}"
        remote.fleet.end()


async def under_load(fleet: Fleet, doing: Coroutine[Any, Any, None]) -> int:
    """Submit batch after batch until it is done; gives how many jobs there were."""
    busy, count = asyncio.create_task(doing), 0
    while not busy.done():
        job = await fleet.submit(*fleet.quick(BATCH))
        count += 1
        await eventually(partial(is_over, fleet, job, busy), fleet.explain)
    await busy
    return count


async def is_over(fleet: Fleet, job: Job, busy: asyncio.Task[None]) -> bool:
    return busy.done() or (await fleet.job(job)).status == "completed"


async def completes(fleet: Fleet, job: Job) -> None:
    async def has() -> bool:
        return (await fleet.job(job)).status == "completed"

    await eventually(has, fleet.explain)


async def nothing_failed(fleet: Fleet, job: Job) -> None:
    """All jobs complete; no task was lost, crashed or tried again, and the long body ran once."""
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert await fleet.rows(select(tables.jobs.c.id).where(tables.jobs.c.status != "completed")) == []
    counts = tables.tasks.c
    touched = select(counts.id).where((counts.lost_count + counts.crash_count + counts.attempt) > 0)
    assert await fleet.rows(touched) == []
    assert len(fleet.notes("began")) == len(fleet.notes("ended")) == 1


async def begun(remote: Remote) -> Job:
    """A body that lasts longer than whatever happens to the servers."""
    job = await remote.fleet.submit(remote.fleet.errand("waits_async"))
    await remote.fleet.noted("began", 1)
    return job


async def restart_all(remote: Remote, *program: str) -> None:
    """One server after the other ends in order, and begins again where it was."""
    for number, server in enumerate(list(remote.servers)):
        server.signal(signal.SIGTERM)
        assert await server.ended() == 0, server.said()
        await remote.serve_again(number, program)


async def restarted_under_load(remote: Remote, url: str) -> None:
    """Two workers work at this address while the servers are restarted again and again."""
    await remote.workers(2, url=url)
    job = await begun(remote)

    async def restarting() -> None:
        for _ in range(ROUNDS):
            await restart_all(remote)

    assert await under_load(remote.fleet, restarting()) >= 1
    assert await remote.fleet.scalar(select(func.count()).select_from(tables.workers)) == 2, "sessions were kept"
    await nothing_failed(remote.fleet, job)


async def test_servers_behind_haproxy_are_restarted_under_load(remote: Remote, balanced: str) -> None:
    await restarted_under_load(remote, balanced)


@pytest.mark.long
async def test_servers_of_a_list_of_addresses_are_restarted_under_load(remote: Remote) -> None:
    await restarted_under_load(remote, ",".join(remote.addresses))


@pytest.mark.long
async def test_behind_haproxy_one_server_is_killed_and_the_other_paused(remote: Remote, balanced: str) -> None:
    fleet = remote.fleet
    await remote.workers(2, url=balanced)
    job = await begun(remote)
    disturbances: tuple[Callable[[Member], None], ...] = (Member.kill, lambda server: server.signal(signal.SIGSTOP))
    for disturb in disturbances:
        disturb(remote.servers[0])
        for _ in range(3):
            await completes(fleet, await fleet.submit(*fleet.quick(BATCH)))
        if remote.servers[0].alive:
            remote.servers[0].signal(signal.SIGCONT)
        else:
            await remote.serve_again(0)
        remote.servers.reverse()
        remote.ports.reverse()
    await nothing_failed(fleet, job)


@pytest.mark.long
async def test_a_new_version_of_the_protocol_comes_to_the_servers_first_and_then_to_the_workers(
    remote: Remote,
) -> None:
    """Servers understand the version before theirs; whoever comes later than that is told what to install."""
    fleet, both = remote.fleet, ",".join(remote.addresses)
    (old,) = await remote.workers(1, url=both)
    job = await begun(remote)
    too_new = remote.start_worker(url=remote.addresses[0], program=speaking(2))
    assert await too_new.ended() == REFUSED
    assert "understands versions 1 to 1" in too_new.said()

    await under_load(fleet, restart_all(remote, *speaking(2)))
    assert old.alive
    (new,) = await remote.workers(1, url=both, program=speaking(2))
    for worker in (new, old):
        only = await fleet.submit(*fleet.quick(BATCH))
        await completes(fleet, only)
        assert worker.alive
    fleet.let()
    await completes(fleet, job)
    old.signal(signal.SIGTERM)
    assert await old.ended() == 0

    await under_load(fleet, restart_all(remote, *speaking(3)))
    assert new.alive
    late = remote.start_worker(url=both)
    assert await late.ended() == REFUSED
    assert "understands versions 2 to 3" in late.said()
    assert "Install aaiclick" in late.said()
    await nothing_failed(fleet, job)


@pytest.mark.long
async def test_a_worker_passes_over_the_servers_that_do_not_understand_it_yet(remote: Remote) -> None:
    """One of two is up to date: a new worker works with that one, and ends only when nobody understands it."""
    fleet = remote.fleet
    server = remote.servers[1]
    server.signal(signal.SIGTERM)
    assert await server.ended() == 0
    await remote.serve_again(1, speaking(3))
    (new,) = await remote.workers(1, url=",".join(remote.addresses), program=speaking(3))
    job = await begun(remote)
    await completes(fleet, await fleet.submit(*fleet.quick(BATCH)))
    assert new.alive
    await nothing_failed(fleet, job)
    assert await fleet.scalar(select(func.count()).select_from(tables.workers)) == 1
