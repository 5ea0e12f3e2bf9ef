"""Rooms: who hears whom without the database, and who is forgotten."""

from __future__ import annotations

import asyncio
import gc
import os

import pytest

from aaiclick.orchestration.bus import local, open_bus
from aaiclick.orchestration.bus.local import ALL_HINTS, LocalBus, Room
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS, READY

URL = "mariadb+asyncmy://user@host/database"


def test_all_hints_are_the_words_of_the_rules() -> None:
    assert {READY, ORDERS, ENDED} <= ALL_HINTS
    assert all(word.isidentifier() and word.islower() for word in ALL_HINTS)


def test_a_message_says_what_was_packed_to_all_but_its_own_room() -> None:
    here, there = Room(), Room()
    message = here.pack({READY, ENDED})
    assert there.unpack(message) == {READY, ENDED}
    assert here.unpack(message) == frozenset()


@pytest.mark.parametrize("message", ["", " ", "ready", "token", "token ", "token gossip,,ready's", "\0 \0", "é" * 9000])
def test_a_message_that_is_not_understood_says_nothing(message: str) -> None:
    assert Room().unpack(message) == frozenset()


async def test_urls_are_rooms() -> None:
    one, two, apart = LocalBus(URL), LocalBus(URL), LocalBus(URL + "2")
    assert one._room is two._room is not apart._room


async def test_a_room_that_nobody_is_in_is_forgotten() -> None:
    bus = LocalBus(URL)
    assert URL in local._rooms
    await bus.listen()
    await bus.close()
    del bus
    gc.collect()
    assert URL not in local._rooms


async def test_a_loop_that_ended_with_its_bus_open_is_forgotten() -> None:
    left_open: list[LocalBus] = []

    async def elsewhere() -> None:
        left_open.append(LocalBus(URL))
        await left_open[0].listen()

    await asyncio.to_thread(asyncio.run, elsewhere())
    here = LocalBus(URL)
    await here.listen()
    assert left_open[0] in here._room.listeners
    here.tell([READY])
    assert await here.wait(0) == {READY}
    assert here._room.listeners == {here}


async def test_a_forked_child_is_in_no_room() -> None:
    bus = LocalBus(URL)
    await bus.listen()
    child = os.fork()
    if child == 0:
        os._exit(0 if not local._rooms and local._lock.acquire(blocking=False) else 1)
    _, status = os.waitpid(child, 0)  # noqa: ASYNC222 (it ends at once)
    assert os.waitstatus_to_exitcode(status) == 0
    await bus.close()


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "mysql+asyncmy://user@host/database",
        "sqlite+aiosqlite://",
        "sqlite+aiosqlite:///:memory:",
        "sqlite+aiosqlite:////file?mode=memory",
    ],
)
async def test_what_no_other_process_shares_or_can_be_woken_through_is_local(url: str) -> None:
    assert type(open_bus(url)) is LocalBus
