"""One conformance suite for whoever carries wake-ups: between buses of a process, and between processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack

import pytest

from aaiclick.orchestration.bus import Bus, open_bus
from aaiclick.orchestration.bus.local import LocalBus, Room
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS, READY
from tests.servers.databases import Databases
from tests.support.redis_streams import redis_beside
from tests.support.telling import hearer, tell_from_another_process

WAIT_S_MAX = 60.0
"""Long: who hears does not wait for it."""
SILENCE_S = 0.1

BETWEEN_PROCESSES = pytest.mark.parametrize("dialect", ["sqlite", "postgres", "redis"], indirect=True)
"""MariaDB carries no wake-ups between processes."""


@pytest.fixture(params=["sqlite", "postgres", "mariadb", "redis"])
def dialect(request: pytest.FixtureRequest) -> str:
    """Who carries the wake-ups: the database, or a Redis beside it."""
    return str(request.param)


@pytest.fixture
def redis_databases(
    sqlite_databases: Databases, redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Databases]:
    """Databases with a Redis beside them, on streams of the test's own."""
    with redis_beside(redis_server, monkeypatch):
        yield sqlite_databases


@pytest.fixture
async def opened(sql_url: str) -> AsyncIterator[Callable[[], Bus]]:
    """Makes buses on one database, and closes them."""
    async with AsyncExitStack() as stack:

        def make() -> Bus:
            bus = open_bus(sql_url)
            stack.push_async_callback(bus.close)
            return bus

        yield make


@pytest.fixture
async def teller(opened: Callable[[], Bus]) -> Bus:
    return opened()


@pytest.fixture
async def listener(opened: Callable[[], Bus]) -> Bus:
    bus = opened()
    await bus.listen()
    return bus


def as_if_apart(bus: Bus) -> None:
    """Take the bus out of the others' room, as if it were in another process."""
    assert isinstance(bus, LocalBus)
    bus._room.listeners.discard(bus)
    bus._room = Room()


async def test_what_is_told_is_heard(teller: Bus, listener: Bus) -> None:
    teller.tell([READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}


async def test_who_tells_hears_it_too(listener: Bus) -> None:
    listener.tell({ENDED})
    assert await listener.wait(WAIT_S_MAX) == {ENDED}


async def test_all_who_listen_hear(teller: Bus, opened: Callable[[], Bus]) -> None:
    listeners = [opened() for _ in range(3)]
    for each in listeners:
        await each.listen()
    teller.tell([ORDERS])
    assert [await each.wait(WAIT_S_MAX) for each in listeners] == [{ORDERS}] * 3


async def test_it_is_heard_once_and_not_again_as_its_echo(teller: Bus, listener: Bus) -> None:
    teller.tell([READY])
    await teller.flush()
    assert await listener.wait(WAIT_S_MAX) == {READY}
    assert await listener.wait(SILENCE_S) == frozenset()


async def test_what_was_told_meanwhile_is_heard_together(teller: Bus, listener: Bus) -> None:
    for hint in (READY, ORDERS, READY):
        teller.tell([hint])
    assert await listener.wait(WAIT_S_MAX) == {READY, ORDERS}


async def test_what_waits_to_be_heard_is_given_at_once(teller: Bus, listener: Bus) -> None:
    teller.tell([READY])
    assert await listener.wait(0) == {READY}


async def test_who_waits_is_woken(teller: Bus, listener: Bus) -> None:
    waiting = asyncio.create_task(listener.wait(WAIT_S_MAX))
    await asyncio.sleep(0)
    teller.tell([READY])
    assert await waiting == {READY}


async def test_when_nothing_is_told_the_time_is_up(listener: Bus) -> None:
    assert await listener.wait(0) == frozenset()
    assert await listener.wait(SILENCE_S) == frozenset()


async def test_who_does_not_listen_hears_nothing(teller: Bus, opened: Callable[[], Bus]) -> None:
    deaf = opened()
    teller.tell([READY])
    assert await deaf.wait(SILENCE_S) == frozenset()


async def test_who_begins_to_listen_hears_what_is_told_from_then_on(teller: Bus, opened: Callable[[], Bus]) -> None:
    teller.tell([ORDERS])
    await teller.flush()
    late = opened()
    await late.listen()
    teller.tell([READY])
    assert READY in await late.wait(WAIT_S_MAX)


async def test_to_listen_twice_is_to_listen(teller: Bus, listener: Bus) -> None:
    await listener.listen()
    teller.tell([READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}
    assert await listener.wait(SILENCE_S) == frozenset()


async def test_telling_when_nobody_listens(teller: Bus) -> None:
    teller.tell([READY])
    teller.tell([])
    await teller.flush()


async def test_words_that_nobody_knows_are_left_out(teller: Bus, listener: Bus) -> None:
    teller.tell(["'; DROP TABLE jobs; --", "x" * 10_000, ""])
    assert await listener.wait(SILENCE_S) == frozenset()
    teller.tell(["gossip", READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}


async def test_a_thousand_tells_are_few_messages(teller: Bus, listener: Bus) -> None:
    as_if_apart(listener)
    for _ in range(1000):
        teller.tell([READY])
    await teller.flush()
    messages = 0
    while await listener.wait(SILENCE_S):
        messages += 1
    assert messages <= 2


@BETWEEN_PROCESSES
async def test_what_is_told_while_a_message_is_under_way_is_not_lost(teller: Bus, listener: Bus) -> None:
    as_if_apart(listener)
    teller.tell([READY])
    await asyncio.sleep(0)
    teller.tell([ORDERS])
    heard: set[str] = set()
    while heard != {READY, ORDERS}:
        new = await listener.wait(WAIT_S_MAX)
        assert new
        heard |= new


async def test_nothing_to_flush(teller: Bus) -> None:
    await teller.flush()
    await teller.flush()


async def test_closing_is_repeatable_and_nothing_after_it_fails(teller: Bus, listener: Bus) -> None:
    await teller.close()
    await teller.close()
    teller.tell([READY])
    await teller.flush()
    await teller.listen()
    assert await teller.wait(0) == frozenset()
    assert await listener.wait(SILENCE_S) == frozenset()


async def test_who_closed_hears_no_more(teller: Bus, listener: Bus) -> None:
    teller.tell([READY])
    await listener.close()
    teller.tell([READY])
    assert await listener.wait(SILENCE_S) == frozenset()


async def test_who_waits_while_it_is_closed_is_woken_with_nothing(listener: Bus) -> None:
    waiting = asyncio.create_task(listener.wait(WAIT_S_MAX))
    await asyncio.sleep(0)
    await listener.close()
    assert await waiting == frozenset()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mariadb"], indirect=True)
async def test_databases_do_not_hear_each_other(databases, listener: Bus) -> None:
    with databases.empty() as other_url:
        other = open_bus(other_url)
        other.tell([READY])
        await other.flush()
        assert await listener.wait(SILENCE_S) == frozenset()
        await other.close()


async def test_a_loop_in_another_thread_hears_and_is_heard(sql_url: str, listener: Bus) -> None:
    async def elsewhere() -> frozenset[str]:
        bus = open_bus(sql_url)
        await bus.listen()
        bus.tell([READY])
        heard = await bus.wait(WAIT_S_MAX)
        while ORDERS not in heard:
            heard |= await bus.wait(WAIT_S_MAX)
        await bus.close()
        return heard

    there = asyncio.create_task(asyncio.to_thread(asyncio.run, elsewhere()))
    assert await listener.wait(WAIT_S_MAX) == {READY}
    listener.tell([ORDERS])
    assert await there == {READY, ORDERS}


async def test_any_thread_may_tell(teller: Bus, listener: Bus) -> None:
    await asyncio.to_thread(teller.tell, [READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}


@BETWEEN_PROCESSES
async def test_another_process_is_heard(sql_url: str, listener: Bus) -> None:
    await tell_from_another_process(sql_url, READY, ENDED)
    assert await listener.wait(WAIT_S_MAX) == {READY, ENDED}


@BETWEEN_PROCESSES
async def test_another_process_hears(sql_url: str, teller: Bus) -> None:
    async with hearer(sql_url) as one, hearer(sql_url) as two:
        teller.tell([ORDERS])
        assert [await one.heard(), await two.heard()] == [{ORDERS}, {ORDERS}]


@pytest.mark.parametrize("dialect", ["mariadb"], indirect=True)
async def test_on_mariadb_another_process_is_not_heard(sql_url: str, listener: Bus) -> None:
    await tell_from_another_process(sql_url, READY)
    assert await listener.wait(SILENCE_S) == frozenset()


@BETWEEN_PROCESSES
async def test_a_killed_listener_is_no_hindrance(sql_url: str, teller: Bus, listener: Bus) -> None:
    async with hearer(sql_url) as other:
        os.kill(other.process.pid, 9)
        await other.process.wait()
    teller.tell([READY])
    await teller.flush()
    assert await listener.wait(WAIT_S_MAX) == {READY}
