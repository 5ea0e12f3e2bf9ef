"""Claims that are held: woken by hints, as many as there is work, and lost by none who leaves at the wrong moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from aaiclick.errors import SessionOver
from aaiclick.orchestration.coordinator.http.protocol import ClaimTasks
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS, READY
from aaiclick.server.node import held_claims
from aaiclick.server.node.database_room import Busy
from aaiclick.server.node.held_claims import HeldClaims
from aaiclick.server.node.hint_board import HintBoard


def claim_of(number: int) -> Claim:
    return Claim(number, 1, 7, 1, None, "t", "m:t", "{}", 0, None)


class Work:
    """Tasks that can be claimed, and who asked for some."""

    def __init__(self) -> None:
        self.tasks: list[int] = []
        self.asked: list[int] = []
        self.on_ask: Callable[[ClaimTasks], Awaitable[None]] | None = None

    async def claim(self, asked: ClaimTasks) -> list[Claim]:
        self.asked.append(asked.worker)
        if self.on_ask is not None:
            await self.on_ask(asked)
        taken, self.tasks = self.tasks[: asked.limit], self.tasks[asked.limit :]
        return [claim_of(number) for number in taken]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setattr(held_claims, "SCOUT_S", 3600.0)
    return Work()


def ask(worker: int = 1, *, limit: int = 1, wait_s: float = 20.0, **more: object) -> ClaimTasks:
    return ClaimTasks(worker=worker, limit=limit, wait_s=wait_s, **more)  # type: ignore[arg-type]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_work_that_is_there_is_given_at_once(work: Work) -> None:
    held = HeldClaims(work.claim, HintBoard())
    work.tasks = [1, 2]
    assert [claim.task_id for claim in await held.claim(ask(limit=5))] == [1, 2]
    assert await held.claim(ask(wait_s=0)) == []
    assert await held.claim(ask(limit=0)) == []
    assert not held._queues


async def test_a_hint_wakes_as_many_as_there_are_tasks(work: Work) -> None:
    board = HintBoard()
    held = HeldClaims(work.claim, board)
    waiting = [asyncio.create_task(held.claim(ask(number))) for number in range(1, 11)]
    await settle()
    assert len(held) == 10
    asked_before = len(work.asked)
    assert asked_before <= 3  # it is known that there is nothing
    work.tasks = [1, 2, 3]
    board.tell(frozenset({READY}))
    await settle()
    assert [task.result()[0].task_id for task in waiting[:3]] == [1, 2, 3]
    assert work.asked[asked_before:] == [1, 2, 3, 4]
    assert len(held) == 7
    held.close()
    async with asyncio.timeout(30):
        assert [await task for task in waiting[3:]] == [[]] * 7
    assert not held._queues


async def test_a_hint_that_is_told_while_a_claim_looks_is_not_missed(work: Work) -> None:
    board = HintBoard()
    held = HeldClaims(work.claim, board)

    async def between(_: ClaimTasks) -> None:
        """The claim has seen nothing yet; now a task is submitted."""
        work.on_ask = None
        board.tell(frozenset({READY}))
        asyncio.get_running_loop().call_soon(lambda: work.tasks.append(5))

    work.on_ask = between
    async with asyncio.timeout(30):
        found = await held.claim(ask())
        while not found:
            found = await held.claim(ask())
    assert found[0].task_id == 5


async def test_those_who_serve_other_lanes_wait_by_themselves(work: Work) -> None:
    board = HintBoard()
    held = HeldClaims(work.claim, board)
    waiting = [asyncio.create_task(held.claim(ask(number, lanes=(number,)))) for number in (1, 2)]
    await settle()
    work.asked.clear()
    board.tell(frozenset({READY}))
    await settle()
    assert sorted(work.asked) == [1, 2]
    held.close()
    await asyncio.gather(*waiting)


async def test_the_time_is_up_with_nothing(work: Work) -> None:
    held = HeldClaims(work.claim, HintBoard())
    assert await held.claim(ask(wait_s=0.001)) == []


async def test_lost_hints_are_made_up_for_by_one_who_looks(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_claims, "SCOUT_S", 0.001)
    held = HeldClaims(work.claim, HintBoard())
    waiting = [asyncio.create_task(held.claim(ask(number))) for number in (1, 2)]
    await settle()
    work.tasks = [1, 2]
    async with asyncio.timeout(30):
        assert [(await task)[0].task_id for task in waiting] == [1, 2]


async def test_orders_end_a_wait_and_ends_of_jobs_do_not(work: Work) -> None:
    board = HintBoard()
    held = HeldClaims(work.claim, board)
    waiting = asyncio.create_task(held.claim(ask()))
    await settle()
    board.tell(frozenset({ENDED}))
    await settle()
    assert not waiting.done()
    board.tell(frozenset({ORDERS}))
    async with asyncio.timeout(30):
        assert await waiting == []


async def test_an_error_is_told_to_the_one_that_it_concerns(work: Work) -> None:
    board = HintBoard()
    held = HeldClaims(work.claim, board)
    first, second = (asyncio.create_task(held.claim(ask(number))) for number in (1, 2))
    await settle()

    async def over(asked: ClaimTasks) -> None:
        if asked.worker == 1:
            raise SessionOver(worker_id=1, cause="it was ended", swept=True)

    work.on_ask, work.tasks = over, [8]
    board.tell(frozenset({READY}))
    async with asyncio.timeout(30):
        with pytest.raises(SessionOver):
            await first
        assert (await second)[0].task_id == 8


async def test_who_is_being_served_as_its_time_is_up_gets_its_claims(work: Work) -> None:
    """They would be nobody's until they are given back."""
    board = HintBoard()
    held = HeldClaims(work.claim, board)
    waiting = asyncio.create_task(held.claim(ask()))
    await settle()
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_: ClaimTasks) -> None:
        reached.set()
        await go_on.wait()

    work.on_ask, work.tasks = slowly, [8]
    board.tell(frozenset({READY}))
    async with asyncio.timeout(30):
        await reached.wait()
        board.tell(frozenset({ORDERS}))  # ends the wait
        await settle()
        assert not waiting.done()
        go_on.set()
        assert (await waiting)[0].task_id == 8


@pytest.mark.parametrize("claims", [[], [8]])
async def test_who_is_gone_as_it_is_served_keeps_nobody_waiting(work: Work, claims: list[int]) -> None:
    board = HintBoard()
    held = HeldClaims(work.claim, board)
    first, second = (asyncio.create_task(held.claim(ask(number))) for number in (1, 2))
    await settle()
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_: ClaimTasks) -> None:
        reached.set()
        await go_on.wait()

    work.on_ask, work.tasks = slowly, claims
    board.tell(frozenset({READY}))
    async with asyncio.timeout(30):
        await reached.wait()
        first.cancel()
        work.on_ask = None
        go_on.set()
        await settle()
        work.tasks = [9]
        board.tell(frozenset({READY}))
        assert (await second)[0].task_id == 9


async def test_a_busy_database_is_asked_again_later(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    board = HintBoard()
    held = HeldClaims(work.claim, board)
    monkeypatch.setattr("aaiclick.server.node.database_room.AGAIN_S", (0.0, 0.0))
    waiting = asyncio.create_task(held.claim(ask()))
    await settle()
    refused = [Busy(), Busy()]

    async def busy(_: ClaimTasks) -> None:
        if refused:
            raise refused.pop()

    work.on_ask, work.tasks = busy, [3]
    board.tell(frozenset({READY}))
    async with asyncio.timeout(30):
        assert (await waiting)[0].task_id == 3
    assert not refused
