"""Entries of streams through real workers: killed at any moment, beside a Redis that is emptied and killed too."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy import func, select

from aaiclick.orchestration.store import tables
from tests.support.catalogue import register
from tests.support.fleet import LONG, Fleet, eventually, fleet
from tests.support.restarts import RedisProcess, restartable_redis

__all__ = ["fleet"]

LONG_ONLY = pytest.mark.skipif(not LONG, reason="kills workers for a minute: TEST_LONG=1")
STREAM = "stream:orchestrator:inference_jobs"
JOBS = tables.jobs


def use(fleet: Fleet, server: RedisProcess) -> None:
    fleet.env |= {"AAICLICK_REDIS_URL": server.url, "AAICLICK_REDIS_INGEST": "1", "ORCH_CLAIM_IDLE_MS": "500"}


async def send(server: RedisProcess, *numbers: int) -> None:
    async with Redis(host="127.0.0.1", port=server.port) as client:
        for number in numbers:
            payload = json.dumps({"value": number})
            await client.xadd(STREAM, {"job_id": f"entry {number}", "type": "entries", "payload": payload})


async def completed(fleet: Fleet, count: int) -> None:
    async def are_there() -> bool:
        done = select(func.count()).select_from(JOBS).where(JOBS.c.status == "completed")
        return await fleet.scalar(done) == count

    await eventually(are_there, fleet.explain)


async def keys(fleet: Fleet) -> list[str]:
    return sorted(row.key for row in await fleet.rows(select(JOBS.c.key)))


async def test_a_worker_takes_entries_and_runs_them(fleet: Fleet) -> None:
    with restartable_redis() as server:
        use(fleet, server)
        await register(fleet, name="entries", schedule=None, entrypoint="errands.quick")
        await send(server, 0)  # before anybody reads
        [member] = await fleet.workers(1)
        await completed(fleet, 1)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)  # empty, without groups
        await send(server, 0, 1)
        await completed(fleet, 2)
        assert await keys(fleet) == ["entry 0", "entry 1"]
        member.kill()


@LONG_ONLY
async def test_each_entry_is_one_job_whatever_is_killed(fleet: Fleet) -> None:
    """Who sends keeps what it sent until there is a job of it, as nothing else survives a Redis that forgets all."""
    count, draw = 100, random.Random(7)
    with restartable_redis() as server:
        use(fleet, server)
        await register(fleet, name="entries", schedule=None, entrypoint="errands.quick")
        await fleet.workers(2)

        async def all_there() -> bool:
            known = set(await keys(fleet))
            missing = [number for number in range(count) if f"entry {number}" not in known]
            if missing:
                try:
                    await send(server, *draw.sample(missing, min(len(missing), 15)))
                except RedisError:
                    return False  # it is away: sent again
            return not missing

        async def trouble() -> None:
            for turn in range(6):
                await asyncio.sleep(draw.uniform(0.5, 2))
                if turn % 3 == 0:
                    draw.choice([member for member in fleet.members if member.alive]).kill()
                    await fleet.workers(1)
                elif turn % 3 == 1:
                    async with Redis(host="127.0.0.1", port=server.port) as client:
                        await client.flushall()
                else:
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)

        await asyncio.gather(trouble(), eventually(all_there, fleet.explain, seconds=110))
        await completed(fleet, count)
        assert await keys(fleet) == sorted(f"entry {number}" for number in range(count))
