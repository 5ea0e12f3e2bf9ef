"""Clients that wait and follow while their server is stopped and started again (F8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.client import APIClient, AsyncAPIClient
from aaiclick.client.verbs import asking
from aaiclick.errors import ServerUnreachable
from aaiclick.orchestration import ajob_test, create_job, get_events_for_job, get_tasks_for_job
from aaiclick.orchestration.models import Job
from tests.server.conftest import surroundings
from tests.server.outside_flows import chain, echo, fail
from tests.server.routes.test_tasks import write_log
from tests.support.web_server import WebServer, web_server

__all__ = ["surroundings"]


@pytest.fixture
def server(surroundings: Path) -> Iterator[WebServer]:
    with web_server() as running:
        yield running


@pytest.fixture
async def client(server: WebServer) -> AsyncIterator[AsyncAPIClient]:
    async with AsyncAPIClient(server.url, server.token) as made:
        yield made


async def test_a_job_that_ends_while_the_server_is_away_is_seen(server: WebServer, client: AsyncAPIClient) -> None:
    job = await create_job("waited for", echo(1))
    told: asyncio.Queue[Any] = asyncio.Queue()
    waiting = asyncio.create_task(client.wait_for_job(job.id, told=told.put_nowait))
    assert (await told.get())["status"] == "pending"
    await asyncio.to_thread(server.stop)
    await ajob_test(job)
    assert not waiting.done()
    server.start()
    assert (await waiting)["status"] == "completed"


async def test_a_job_that_ends_after_the_restart_is_seen_by_its_event(
    server: WebServer, client: AsyncAPIClient
) -> None:
    job = await create_job("waited for", fail())
    waiting = asyncio.create_task(client.wait_for_job(job.id))
    await asyncio.to_thread(server.stop)
    server.start()
    await ajob_test(job)
    assert (await waiting)["status"] == "failed"


async def test_events_come_once_and_in_order_whatever_becomes_of_the_server(
    server: WebServer, client: AsyncAPIClient
) -> None:
    jobs = [await create_job("first", echo(1)), await chain.submit(x=1), await create_job("last", fail())]
    seen: list[dict[str, Any]] = []
    followed = client.follow_events(after=0)
    for job in jobs:
        await ajob_test(job)
        expected = {event.id for event in await get_events_for_job(job.id)}
        while not expected <= {int(event["id"]) for event in seen}:
            seen.append(dict(await anext(followed)))
        await asyncio.to_thread(server.stop)
        server.start()
    await followed.aclose()
    ids = [int(event["id"]) for event in seen]
    assert ids == sorted(set(ids))
    assert ids == sorted([event.id for job in jobs for event in await get_events_for_job(job.id)])
    await each_task_moved_as_its_states_allow(jobs, seen)


async def each_task_moved_as_its_states_allow(jobs: list[Job], seen: list[dict[str, Any]]) -> None:
    for job in jobs:
        for task in await get_tasks_for_job(job.id):
            statuses = [event["status"] for event in seen if event["task_id"] == str(task.id)]
            assert statuses[-1] == task.status
            assert statuses.count("claimed") == 1


async def test_a_log_is_followed_over_a_restart(server: WebServer, client: AsyncAPIClient) -> None:
    task = echo(1)
    job = await create_job("logged", task)
    followed = client.follow_log(task.id)
    write_log(task, b"before\n", 0)
    assert await anext(followed) == b"before\n"
    await asyncio.to_thread(server.stop)
    server.start()
    await ajob_test(job)
    whole = b"".join([part async for part in followed])
    assert b"before" not in whole


def test_the_blocking_client_waits_as_well(server: WebServer) -> None:
    job = asyncio.run(create_job("waited for", echo(1)))
    with APIClient(server.url, server.token) as client:
        restarted: list[str] = []

        def told(now: Any) -> None:
            restarted.append(now["status"])
            if len(restarted) == 1:
                server.stop()
                asyncio.run(ajob_test(job))
                server.start()

        assert client.wait_for_job(job.id, told=told)["status"] == "completed"
        assert restarted[0] == "pending"


async def test_a_server_that_stays_away_is_given_up(
    server: WebServer, client: AsyncAPIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "OUTAGE_S_MAX", 0.0)
    monkeypatch.setattr("aaiclick.client.verbs.events.OUTAGE_S_MAX", 0.0)
    job = await create_job("waited for", echo(1))
    told: asyncio.Queue[Any] = asyncio.Queue()
    waiting = asyncio.create_task(client.wait_for_job(job.id, told=told.put_nowait))
    await told.get()
    await asyncio.to_thread(server.stop)
    with pytest.raises(ServerUnreachable):
        await waiting
