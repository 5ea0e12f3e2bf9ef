"""The board of hints: each is heard once by whoever comes back with its place."""

from __future__ import annotations

import asyncio

from aaiclick.orchestration.bus.local import ALL_HINTS
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS, READY
from aaiclick.server.node.hint_board import HintBoard


def test_hints_are_told_to_those_who_were_there_before() -> None:
    board = HintBoard()
    early = board.place
    board.tell(frozenset({READY}))
    between = board.place
    board.tell(frozenset({ENDED}))
    assert board.since(early) == [ENDED, READY]
    assert board.since(between) == [ENDED]
    assert board.since(board.place) == board.since("") == []


def test_who_comes_from_elsewhere_may_have_missed_all() -> None:
    board = HintBoard()
    for place in (HintBoard().place, "x", f"{board.place}x", board.place.replace(".", ".²"), "9" * 100):
        assert board.since(place) == sorted(ALL_HINTS)


async def test_waiting_ends_with_the_hint_that_is_waited_for() -> None:
    board = HintBoard()
    waiting = asyncio.create_task(board.wait(board.place, 60, hints=frozenset({ORDERS})))
    await asyncio.sleep(0)
    board.tell(frozenset({READY}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    board.tell(frozenset({ORDERS}))
    async with asyncio.timeout(30):
        await waiting


async def test_waiting_ends_with_its_time_and_with_its_event() -> None:
    board, ending = HintBoard(), asyncio.Event()
    await board.wait("", 0.001)
    waiting = asyncio.create_task(board.wait("", 60, ending))
    await asyncio.sleep(0)
    ending.set()
    async with asyncio.timeout(30):
        await waiting
        await board.wait("", 60, ending)
    assert not board._waiting


async def test_who_waits_is_woken_in_the_order_of_coming() -> None:
    board, woken = HintBoard(), list[int]()

    async def wait(number: int) -> None:
        await board.wait(board.place, 60)
        woken.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(50)]
    await asyncio.sleep(0)
    board.tell(frozenset({READY}))
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)
    assert woken == list(range(50))


async def test_the_board_hears_on_after_a_failure() -> None:
    board = HintBoard()
    heard: asyncio.Queue[frozenset[str] | Exception] = asyncio.Queue()

    async def hear(_: float) -> frozenset[str]:
        found = await heard.get()
        if isinstance(found, Exception):
            raise found
        return found

    place = board.place
    listening = asyncio.create_task(board.listen(hear))
    for each in (OSError("away"), frozenset({READY})):
        heard.put_nowait(each)
    async with asyncio.timeout(30):
        await board.wait(place, 30)
    assert board.since(place) == [READY]
    listening.cancel()
    await listening
