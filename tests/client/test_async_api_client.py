"""The client on event loops."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.client import AsyncAPIClient
from aaiclick.config import reset_settings
from aaiclick.errors import InputError, NotFound, ServerUnreachable, WaitTimeout
from tests.client.conftest import Served
from tests.client.flows import EXACT


async def test_many_at_once(served: Served) -> None:
    async with AsyncAPIClient(served.server.url, served.server.token) as client:
        asked = [client.get_job(job.id) for job in served.jobs.values()]
        names = [job["name"] for job in await asyncio.gather(*asked)]
        assert names == [job.name for job in served.jobs.values()]
        assert await client.get_job_result(served.jobs["exact"].id) == EXACT
        assert (await client.arrow("people")).num_rows == 10
        assert [batch.num_rows async for batch in client.iter_arrow("people")] == [10]
        with pytest.raises(NotFound):
            await client.get_job(5)


def test_a_client_may_be_used_by_one_loop_after_the_other(served: Served) -> None:
    client = AsyncAPIClient(served.server.url, served.server.token)

    async def look() -> bool:
        return await client.is_alive() and bool(await client.list_jobs())

    assert asyncio.run(look())
    assert asyncio.run(look())
    asyncio.run(client.aclose())


async def test_waiting_ends_in_time_and_can_be_cancelled(served: Served) -> None:
    async with AsyncAPIClient(served.server.url, served.server.token) as client:
        with pytest.raises(WaitTimeout) as over:
            await client.wait_for_job(served.jobs["waiting"].id, timeout_s=0.3)
        assert over.value.status == "pending"
        waiting = asyncio.create_task(client.wait_for_job(served.jobs["waiting"].id))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await client.wait_for_job(served.jobs["broken"].id))["status"] == "failed"


def test_the_address_and_the_token_may_be_settings(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="AAICLICK_API_URL"):
        AsyncAPIClient()
    monkeypatch.setenv("AAICLICK_API_URL", served.server.url)
    monkeypatch.setenv("AAICLICK_API_TOKEN", served.server.token)
    reset_settings()
    assert asyncio.run(AsyncAPIClient().list_jobs())["jobs"]
    monkeypatch.undo()
    reset_settings()


async def test_nobody_there() -> None:
    with pytest.raises(ServerUnreachable, match="refused"):
        await AsyncAPIClient("http://127.0.0.1:1", "x", retries=0).list_jobs()
