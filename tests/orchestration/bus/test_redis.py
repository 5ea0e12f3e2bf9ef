"""Wake-ups through Redis: servers that are away, killed, emptied; Sentinels; addresses and secrets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from redis.asyncio import Redis

from aaiclick.orchestration.bus import reconnecting
from aaiclick.orchestration.bus import redis as bus_module
from aaiclick.orchestration.bus.local import ALL_HINTS, Room
from aaiclick.orchestration.bus.redis import KEPT, RedisBus
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS, READY
from tests.servers.process import free_port
from tests.support.restarts import restartable_redis

WAIT_S_MAX = 60.0
SILENCE_S = 0.1
PREFIX = "test-bus:"

Opens = Callable[..., RedisBus]


@pytest.fixture
async def opened() -> AsyncIterator[Opens]:
    """Makes buses that hear each other through Redis only, as if each were in a process of its own."""
    async with AsyncExitStack() as stack:

        def make(redis_url: str, prefix: str = PREFIX) -> RedisBus:
            bus = RedisBus("sqlite:///beside", redis_url, prefix)
            bus._room = Room()
            stack.push_async_callback(bus.close)
            return bus

        yield make


@pytest.fixture
async def client(redis_server: str) -> AsyncIterator[Redis]:
    """A connection of the test's own."""
    async with Redis.from_url(redis_server, protocol=2) as client:
        await client.delete(f"{PREFIX}hints")
        yield client
        await client.delete(f"{PREFIX}hints")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between tries are short."""
    monkeypatch.setattr(reconnecting, "PAUSE_S_MIN", 0.001)
    monkeypatch.setattr(reconnecting, "PAUSE_S_MAX", 0.01)


async def heard_until(listener: RedisBus, word: str) -> None:
    while word not in (heard := await listener.wait(WAIT_S_MAX)):
        assert heard, f"{word} was not heard"


async def connections(client: Redis) -> int:
    return sum(each["name"] == "aaiclick-bus" for each in await client.client_list())


async def test_it_connects_when_it_is_needed_and_gives_the_connections_back(
    redis_server: str, opened: Opens, client: Redis
) -> None:
    bus = opened(redis_server)
    await bus.flush()
    assert await connections(client) == 0
    bus.tell([READY])
    await bus.listen()
    assert await connections(client) > 0
    await bus.close()
    async with asyncio.timeout(WAIT_S_MAX):
        while await connections(client):  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.01)


async def test_messages_are_few_merged_and_can_be_read_by_others(
    redis_server: str, opened: Opens, client: Redis
) -> None:
    bus = opened(redis_server)
    for _ in range(500):
        bus.tell([READY])
        bus.tell([ORDERS])
    await bus.flush()
    found: Any = await client.xrange(f"{PREFIX}hints")
    [(_, facts)] = found
    assert facts == {b"from": bus._room.token.encode(), b"hints": b"orders,ready"}


async def test_redis_keeps_a_bounded_number_of_them(redis_server: str, opened: Opens, client: Redis) -> None:
    async with client.pipeline(transaction=False) as pipeline:
        for _ in range(3 * KEPT):
            pipeline.xadd(f"{PREFIX}hints", {"from": "me", "hints": READY})
        await pipeline.execute()
    bus = opened(redis_server)
    bus.tell([READY])
    await bus.flush()
    assert await client.xlen(f"{PREFIX}hints") <= KEPT + 100  # whole nodes of the stream are dropped


async def test_another_prefix_is_not_heard(redis_server: str, opened: Opens, client: Redis) -> None:
    listener, teller = opened(redis_server), opened(redis_server, "test-other:")
    await listener.listen()
    teller.tell([READY])
    await teller.flush()
    assert await listener.wait(SILENCE_S) == frozenset()
    await client.delete("test-other:hints")


@pytest.mark.parametrize(
    "facts",
    [{"x": "y"}, {"from": b"\xff\xfe", "hints": b"\xff"}, {"from": "me", "hints": "x" * 100_000}, {"hints": ",,,"}],
    ids=["other fields", "no text", "huge", "no words"],
)
async def test_entries_of_others_do_no_harm(
    redis_server: str, opened: Opens, client: Redis, facts: dict[str, str]
) -> None:
    listener, teller = opened(redis_server), opened(redis_server)
    await listener.listen()
    await client.xadd(f"{PREFIX}hints", facts)  # type: ignore[arg-type]  # its names and values are of one type there
    teller.tell([READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}


async def test_a_listener_that_was_cut_off_hears_again(
    redis_server: str, opened: Opens, client: Redis, impatient: None
) -> None:
    teller, listener = opened(redis_server), opened(redis_server)
    for _ in range(2):
        await listener.listen()
        for each in await client.client_list():
            if each["name"] == "aaiclick-bus":
                await client.client_kill_filter(_id=each["id"])
        assert await listener.wait(WAIT_S_MAX) == ALL_HINTS  # something may have been missed
        teller.tell([READY])
        await heard_until(listener, READY)


async def test_a_server_that_is_away_is_said_once_and_raises_nothing(
    opened: Opens, caplog: pytest.LogCaptureFixture, impatient: None
) -> None:
    bus = opened(f"redis://me:hunter2@127.0.0.1:{free_port()}/0")
    await bus.listen()
    bus.tell([READY])
    await bus.flush()
    assert await bus.wait(WAIT_S_MAX) == {READY}  # within the process it is heard
    for _ in range(10_000):
        bus.tell([READY, ENDED])
    while bus._backoff._count < 5:
        await bus.wait(0.01)
    assert [record.levelno for record in caplog.records if record.name == "aaiclick"] == [logging.WARNING]
    assert "127.0.0.1" in caplog.text
    assert "hunter2" not in caplog.text + bus.trouble
    assert "ConnectionError" in bus.trouble
    assert bus._outgoing <= ALL_HINTS  # what waits to be told does not grow


async def test_a_wrong_password_is_as_silent(
    redis_server: str, opened: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    bus = opened(redis_server.replace("://", "://nobody:hunter2@"))
    await bus.listen()
    assert bus.trouble
    assert len(caplog.records) == 1
    assert "hunter2" not in caplog.text


async def test_a_key_of_another_kind_is_said(redis_server: str, opened: Opens, client: Redis) -> None:
    await client.set(f"{PREFIX}hints", "a text")
    bus = opened(redis_server)
    await bus.listen()
    assert "WRONGTYPE" in bus.trouble


async def test_a_killed_server_that_comes_again_empty_is_used_again(opened: Opens, impatient: None) -> None:
    with restartable_redis(is_up=False) as server:
        teller, listener = opened(server.url), opened(server.url)
        await listener.listen()
        teller.tell([READY])
        await teller.flush()  # does not wait for a server that is away
        assert await listener.wait(SILENCE_S) == frozenset()
        await asyncio.to_thread(server.start)
        await heard_until(listener, READY)  # what was told meanwhile, or that something may have been missed
        await asyncio.to_thread(server.kill)
        teller.tell([ENDED])
        while not (teller.trouble and listener.trouble):
            await listener.wait(0.01)
        await asyncio.to_thread(server.start)
        await heard_until(listener, ENDED)
        while teller.trouble or listener.trouble:
            await listener.wait(0.01)
        teller.tell([ORDERS])
        await heard_until(listener, ORDERS)


async def test_what_is_told_after_everything_was_removed_is_heard(
    redis_server: str, opened: Opens, client: Redis
) -> None:
    teller, listener = opened(redis_server), opened(redis_server)
    await listener.listen()
    teller.tell([READY])
    await heard_until(listener, READY)
    await client.delete(f"{PREFIX}hints")
    teller.tell([ORDERS])
    assert await listener.wait(WAIT_S_MAX) == {ORDERS}


async def test_a_stream_that_begins_anew_with_lower_ids_is_heard(
    redis_server: str, opened: Opens, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after its removal on a server whose clock was set back."""
    monkeypatch.setattr(bus_module, "BLOCK_S", 0.05)
    await client.xadd(f"{PREFIX}hints", {"from": "me", "hints": READY}, id="9999999999999-0")
    listener = opened(redis_server)
    await listener.listen()
    await client.delete(f"{PREFIX}hints")
    assert await listener.wait(WAIT_S_MAX) == ALL_HINTS
    await client.xadd(f"{PREFIX}hints", {"from": "me", "hints": READY})
    assert await listener.wait(WAIT_S_MAX) == {READY}


async def test_quiet_is_no_trouble(
    redis_server: str, opened: Opens, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "BLOCK_S", 0.02)
    listener = opened(redis_server)
    await listener.listen()
    assert await listener.wait(10 * 0.02) == frozenset()
    assert listener.trouble == ""
