"""Back-pressure: what is urgent finds a place or waits for one; the rest is told to come back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from aaiclick.server.node import database_room
from aaiclick.server.node.database_room import AGAIN_S, Busy, DatabaseRoom


async def enter(room: DatabaseRoom, stack: AsyncExitStack, number: int, *, urgent: bool) -> None:
    for _ in range(number):
        await stack.enter_async_context(room.place(urgent=urgent))


async def test_claims_leave_places_to_what_is_urgent() -> None:
    room = DatabaseRoom(8)
    async with AsyncExitStack() as stack:
        await enter(room, stack, 6, urgent=False)
        with pytest.raises(Busy) as busy:
            await enter(room, stack, 1, urgent=False)
        assert AGAIN_S[0] <= busy.value.again_s <= AGAIN_S[1]
        await enter(room, stack, 2, urgent=True)
        assert room.taken == 8
    assert room.taken == 0


async def test_what_is_urgent_waits_for_its_turn() -> None:
    room = DatabaseRoom(1)
    order: list[int] = []

    async def work(number: int) -> None:
        async with room.place(urgent=True):
            order.append(number)
            assert room.taken == 1

    async with room.place(urgent=True):
        tasks = [asyncio.create_task(work(number)) for number in range(5)]
        await asyncio.sleep(0)
        assert order == []
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]
    assert room.taken == 0


async def test_who_gives_up_waiting_keeps_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_room, "WAIT_S_MAX", 0.001)
    room = DatabaseRoom(1)
    async with room.place(urgent=True):
        with pytest.raises(Busy):
            await enter(room, AsyncExitStack(), 1, urgent=True)
        monkeypatch.setattr(database_room, "WAIT_S_MAX", 60)
        waiting = asyncio.create_task(enter(room, AsyncExitStack(), 1, urgent=True))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert (room.taken, len(room._waiting)) == (0, 0)


async def test_a_place_that_was_handed_to_somebody_who_is_gone_goes_on() -> None:
    room = DatabaseRoom(1)
    first = room.place(urgent=True)
    await first.__aenter__()
    gone = asyncio.create_task(enter(room, AsyncExitStack(), 1, urgent=True))
    await asyncio.sleep(0)
    await first.__aexit__(None, None, None)  # hands over
    gone.cancel()  # before it could take it
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert room.taken == 0


async def test_too_many_that_wait_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_room, "WAITING_MAX", 0)
    room = DatabaseRoom(1)
    async with room.place(urgent=True):
        with pytest.raises(Busy):
            await enter(room, AsyncExitStack(), 1, urgent=True)
