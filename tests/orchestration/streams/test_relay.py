"""The relay on a real Redis: each entry once, whatever is killed or emptied meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from aaiclick.errors import BackendUnreachable
from aaiclick.orchestration import count_jobs, get_job_result, list_jobs, orch_context, register_job
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.orchestration.streams import relay as module
from aaiclick.orchestration.streams.relay import ATTEMPTS_MAX, INBOUND, Relay
from tests.servers.process import free_port
from tests.support.front_door import local as local
from tests.support.redis_streams import redis_beside
from tests.support.restarts import restartable_redis

FLOWS = "tests.orchestration.sample_flows"
WAIT_S_MAX = 60.0


def relay(url: str, prefix: str, *, idle_ms: int = 0, leads: bool = True) -> Relay:
    return Relay(url, prefix, lambda: leads, idle_ms=idle_ms, bytes_max=10_000)


class Stage:
    """A Redis with streams of the test's own, and a relay that reads them when the test says so."""

    def __init__(self, url: str, prefix: str, client: Redis) -> None:
        self.url, self.prefix, self.client = url, prefix, client
        self.relay = relay(url, prefix)

    async def add(self, stream: str = "inference_jobs", **fields: Any) -> None:
        plain: Any = {name: json.dumps(value) if name == "payload" else value for name, value in fields.items()}
        await self.client.xadd(self.prefix + stream, plain)

    async def read(self) -> None:
        """Two rounds: the first may make the groups."""
        for _ in range(2):
            await self.relay.round(self.client)

    async def pending(self, stream: str = "inference_jobs", group: str = "cg:inference") -> int:
        found: Any = await self.client.xpending(self.prefix + stream, group)
        return int(found["pending"])

    async def dead(self) -> list[dict[str, str]]:
        found: Any = await self.client.xrange(f"{self.prefix}dlq")
        return [{name.decode(): value.decode() for name, value in fields.items()} for _, fields in found]


@pytest.fixture
async def stage(local: Path, redis_server: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    with redis_beside(redis_server, monkeypatch) as prefix:
        async with Redis.from_url(redis_server, protocol=2) as client, orch_context():
            await register_job("adding", f"{FLOWS}.add", default_kwargs={"a": 1})
            yield Stage(redis_server, prefix, client)


async def test_an_entry_becomes_a_job_and_is_acknowledged(stage: Stage) -> None:
    await stage.add(job_id="123", type="adding", payload={"b": 2})
    await stage.read()
    [job] = await list_jobs()
    assert (job.name, job.key) == ("adding", "123")
    assert (await stage.pending(), await stage.dead()) == (0, [])
    await ajob_test(job)
    assert await get_job_result(job.id) == 3


@pytest.mark.parametrize("stream", ["inference_jobs", "preloads", "ingest_events"])
async def test_each_stream_of_jobs_is_read_from_its_first_entry(stage: Stage, stream: str) -> None:
    await stage.add(stream, type="adding", payload={"b": 2})  # before there is a group
    await stage.read()
    [job] = await list_jobs()
    assert job.key is not None
    assert job.key.startswith(f"{stage.prefix}{stream}/")


async def test_orders_are_carried_out(stage: Stage) -> None:
    await stage.add(job_id="123", type="adding", payload={"b": 2})
    await stage.read()
    [job] = await list_jobs()
    await stage.add("control", type="cancel_job", payload={"job": str(job.id)})
    await stage.read()
    [job] = await list_jobs()
    assert job.status == "cancelled"


async def test_the_same_id_is_the_same_job(stage: Stage) -> None:
    for _ in range(3):
        await stage.add(job_id="123", type="adding", payload={"b": 2})
    await stage.read()
    assert await count_jobs() == 1
    assert await stage.dead() == []


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a type that nobody registered": ({"type": "nothing"}, "No registered job with name nothing"),
    "another content under an id that was used": ({"job_id": "taken", "type": "adding", "payload": {"b": 3}}, "taken"),
    "an argument that there is not": ({"type": "adding", "payload": {"b": 1, "c": 2}}, "c"),
    "an argument that is missing": ({"type": "adding", "payload": {}}, "b"),
    "an argument of another type": ({"type": "adding", "payload": {"b": "x"}}, "b"),
    "no object": ({"type": "adding", "payload": [1]}, "it must be an object"),
    "an unknown field": ({"type": "adding", "priority": "1"}, "there is no such field"),
    "too large": ({"type": "adding", "payload": {"b": "x" * 20_000}}, "at most 10000 bytes"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_refused_is_a_dead_letter(stage: Stage, case: str) -> None:
    await stage.add(job_id="taken", type="adding", payload={"b": 2})
    await stage.read()
    fields, why = REFUSED[case]
    await stage.add(**{"job_id": "456", **fields})
    await stage.read()
    [letter] = await stage.dead()
    assert letter.keys() == {"job_id", "origin_id", "attempts", "last_error"}
    assert letter["job_id"] == fields.get("job_id", "456")
    assert letter["origin_id"].startswith(f"{stage.prefix}inference_jobs/")
    assert letter["attempts"] == "1"
    assert why in letter["last_error"]
    assert "\n" not in letter["last_error"]
    assert (await stage.pending(), await count_jobs()) == (0, 1)


async def test_an_order_that_there_is_not_is_a_dead_letter(stage: Stage) -> None:
    await stage.add("control", type="evict_pool", payload={"pool_id": "p"})
    await stage.read()
    [letter] = await stage.dead()
    assert "there is no such order" in letter["last_error"]


async def test_killed_between_the_commit_and_the_acknowledgement_there_is_no_second_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.read()
    await stage.add(job_id="123", type="adding", payload={"b": 2})

    async def killed(*_: object) -> int:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Redis, "xack", killed)
        with pytest.raises(SystemExit):
            await stage.relay.round(stage.client)
    assert (await count_jobs(), await stage.pending()) == (1, 1)
    stage.relay = relay(stage.url, stage.prefix)  # of the next leader
    await stage.read()
    assert (await count_jobs(), await stage.pending(), await stage.dead()) == (1, 0, [])


async def test_while_the_database_is_away_entries_stay_and_are_not_lost(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: object) -> None:
        raise BackendUnreachable(url="somewhere", cause="nobody answers")

    await stage.add(job_id="123", type="adding", payload={"b": 2})
    with monkeypatch.context() as patch:
        patch.setattr(module, "INBOUND", tuple(each._replace(act=away) for each in INBOUND))
        await stage.read()
        assert (await stage.pending(), await stage.dead()) == (1, [])
    await asyncio.sleep(0.002)
    await stage.read()
    assert (await count_jobs(), await stage.pending()) == (1, 0)


async def test_what_fails_again_and_again_is_given_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def bug(_: object) -> None:
        raise RuntimeError("password=hunter2 a bug")

    monkeypatch.setattr(module, "INBOUND", tuple(each._replace(act=bug) for each in INBOUND))
    await stage.add(job_id="123", type="adding", payload={"b": 2})
    for _ in range(ATTEMPTS_MAX + 2):
        await stage.read()
        await asyncio.sleep(0.002)
    [letter] = await stage.dead()
    assert letter["attempts"] == str(ATTEMPTS_MAX)
    assert "a bug" in letter["last_error"]
    assert "hunter2" not in letter["last_error"]
    assert await stage.pending() == 0


async def test_after_everything_was_removed_groups_are_made_again_and_nothing_comes_twice(stage: Stage) -> None:
    for number in range(30):
        await stage.add(job_id=f"first {number}", type="adding", payload={"b": number})
    await stage.relay.round(stage.client)
    await stage.relay.round(stage.client)
    for each in INBOUND:
        await stage.client.delete(stage.prefix + each.name)
    for number in range(25, 50):  # who sent them sends some again
        await stage.add(job_id=f"first {number}", type="adding", payload={"b": number})
    for _ in range(5):
        await stage.relay.round(stage.client)
    keys = [job.key for job in await list_jobs(limit=100)]
    assert len(keys) == len({*keys})
    assert {f"first {number}" for number in (*range(20), *range(25, 50))} <= {*keys}
    assert await stage.pending() == 0


async def test_two_relays_at_once_make_one_job_of_each(stage: Stage) -> None:
    await stage.read()
    for number in range(20):
        await stage.add(job_id=str(number), type="adding", payload={"b": number})
    other = relay(stage.url, stage.prefix)
    async with Redis.from_url(stage.url, protocol=2) as client:
        for _ in range(4):
            await asyncio.gather(stage.relay.round(stage.client), other.round(client))
    assert sorted(str(job.key) for job in await list_jobs(limit=100)) == sorted(map(str, range(20)))
    assert (await stage.pending(), await stage.dead()) == (0, [])


async def test_a_round_is_bounded(stage: Stage) -> None:
    await stage.read()
    for number in range(module.READ_AT_ONCE + 5):
        await stage.add(job_id=str(number), type="nothing")
    assert await stage.relay.round(stage.client) <= module.READ_AT_ONCE + module.RECLAIMED_AT_ONCE
    assert len(await stage.dead()) == module.READ_AT_ONCE


async def test_entries_that_were_trimmed_while_pending_are_left_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.add(job_id="123", type="adding", payload={"b": 2})
    await stage.relay.round(stage.client)  # makes the groups
    await stage.client.xreadgroup("cg:inference", "gone", {f"{stage.prefix}inference_jobs": ">"})
    await stage.client.xtrim(f"{stage.prefix}inference_jobs", maxlen=0, approximate=False)
    await asyncio.sleep(0.002)
    await stage.read()
    assert (await stage.pending(), await stage.dead()) == (0, [])


async def test_it_reads_only_while_it_leads(stage: Stage) -> None:
    await stage.add(job_id="123", type="adding", payload={"b": 2})
    idle = asyncio.create_task(relay(stage.url, stage.prefix, leads=False).run())
    await asyncio.sleep(0.05)
    idle.cancel()
    await asyncio.wait([idle])
    assert await count_jobs() == 0


async def test_a_redis_that_is_away_killed_and_empty_again_is_read_again(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.01)
    with restartable_redis(is_up=False) as server:
        running = asyncio.create_task(relay(server.url, stage.prefix).run())
        for number in range(2):
            await asyncio.to_thread(server.start)
            async with Redis.from_url(server.url) as client:
                await client.xadd(
                    f"{stage.prefix}inference_jobs", {"job_id": str(number), "type": "adding", "payload": '{"b": 1}'}
                )
                async with asyncio.timeout(WAIT_S_MAX):
                    while await count_jobs() <= number:  # noqa: ASYNC110 (nobody tells)
                        await asyncio.sleep(0.01)
            await asyncio.to_thread(server.kill)
        running.cancel()
        await asyncio.wait([running], timeout=WAIT_S_MAX)
        assert running.done()
    assert sorted(str(job.key) for job in await list_jobs()) == ["0", "1"]


async def test_a_password_is_not_logged(local: Path, caplog: pytest.LogCaptureFixture) -> None:
    running = asyncio.create_task(relay(f"redis://me:hunter2@127.0.0.1:{free_port()}/0", "test:").run())
    async with asyncio.timeout(WAIT_S_MAX):
        while "fails" not in caplog.text:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running], timeout=WAIT_S_MAX)
    assert "hunter2" not in caplog.text
