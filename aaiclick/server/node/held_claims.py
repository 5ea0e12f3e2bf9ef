"""Claims that are held until there is work: those who wait for the same lanes are served one after the other.

A hint wakes as many of them as there are tasks: whoever gets none is the last that asks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aaiclick.orchestration.coordinator.http.protocol import HELD_S_MAX, ClaimTasks
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.naming.hints import FREED, ORDERS, READY
from aaiclick.server.node.database_room import Busy
from aaiclick.server.node.hint_board import HintBoard

SCOUT_S, SCOUT_S_MAX, SCOUTS_A_SECOND = 1.0, 3.0, 20
"""How often one of those who wait for the same asks although nothing was heard: hints may be lost, and some states tell
none. The more queues there are, the less often, so that there are at most so many claims a second as long as that is
possible."""

WORK, CALLING = frozenset({READY, FREED}), frozenset({ORDERS})
"""Hints that are followed by a claim; hints that end a wait, so that they arrive."""

Ways = tuple[int, tuple[int, ...] | None, int]
"""What is claimed: (reserved_for, lanes, kind). Whoever waits for the same may be told the same."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """One held call."""

    asked: ClaimTasks
    turn: asyncio.Future[list[Claim]]
    leaving: bool = False
    """It waits no more, only for the claim that is being made for it."""

    def answer(self, claims: list[Claim]) -> None:
        if not self.turn.done():  # else the connection ended meanwhile: the worker asks again, or gives them back
            self.turn.set_result(claims)


@dataclass(slots=True, eq=False)
class _Queue:
    """Those who wait for the same."""

    waiting: deque[_Waiter] = field(default_factory=deque)
    serving: asyncio.Task[None] | None = None
    asking: _Waiter | None = None
    """The one for whom a claim is being made."""
    empty_at: str = ""
    """The place on the board when a claim found nothing the last time; empty if that may have changed."""

    def leave(self, waiter: _Waiter) -> None:
        if waiter in self.waiting:
            self.waiting.remove(waiter)


class HeldClaims:
    """The claims that one server holds."""

    def __init__(self, claim: Callable[[ClaimTasks], Awaitable[list[Claim]]], board: HintBoard) -> None:
        self._claim = claim
        self._board = board
        self._queues: dict[Ways, _Queue] = {}

    def __len__(self) -> int:
        return sum(len(queue.waiting) for queue in self._queues.values())

    async def claim(self, asked: ClaimTasks, *ends: asyncio.Event, kind: int = 0) -> list[Claim]:
        """Claim at once, or as soon as there is work; nothing if the time is up, hints came, or an event is set.

        Those of one `kind` are given the same tasks, whatever their node.
        """
        ways = (asked.reserved_for, asked.lanes, kind)
        queue = self._queues.get(ways) or _Queue()
        if asked.again or not self._is_known_empty(queue):
            claims = await self._ask(queue, asked)
            if claims:
                return claims
        if asked.wait_s <= 0 or asked.limit < 1:
            return []
        queue = self._queues.setdefault(ways, queue)
        waiter = _Waiter(asked, asyncio.get_running_loop().create_future())
        queue.waiting.append(waiter)
        if queue.serving is None:
            queue.serving = asyncio.create_task(self._serve(ways, queue))
        try:
            return await self._turn(queue, waiter, *ends)
        finally:
            if not waiter.turn.done():
                waiter.turn.cancel()
            queue.leave(waiter)

    async def _turn(self, queue: _Queue, waiter: _Waiter, *ends: asyncio.Event) -> list[Claim]:
        """Wait for claims, until the time is up or a call comes; who is just being served waits for that."""
        held_s = min(waiter.asked.wait_s, HELD_S_MAX)
        over: asyncio.Future[Any] = asyncio.ensure_future(
            self._board.wait(waiter.asked.since, held_s, *ends, hints=CALLING)
        )
        both: list[asyncio.Future[Any]] = [waiter.turn, over]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
        waiter.leaving = True
        if queue.asking is waiter:
            return await waiter.turn
        return waiter.turn.result() if waiter.turn.done() else []

    async def _serve(self, ways: Ways, queue: _Queue) -> None:
        """Serve a queue as long as somebody waits in it."""
        try:
            while queue.waiting:
                if self._is_known_empty(queue):
                    await self._board.wait(queue.empty_at, self._scout_s(), hints=WORK)
                    queue.empty_at = ""
                await self._serve_all(queue)
        finally:
            queue.serving = None
            self._queues.pop(ways, None)
            for waiter in queue.waiting:  # none, unless the server ends
                waiter.answer([])

    def _scout_s(self) -> float:
        return max(SCOUT_S, min(SCOUT_S_MAX, len(self._queues) / SCOUTS_A_SECOND))

    async def _serve_all(self, queue: _Queue) -> None:
        """Claim for one after the other, until one gets nothing."""
        while queue.waiting:
            waiter = queue.asking = queue.waiting[0]
            try:
                claims = await self._ask(queue, waiter.asked)
            except Busy as busy:
                queue.asking = None
                if waiter.leaving:
                    waiter.answer([])
                await asyncio.sleep(busy.again_s)
                continue
            except Exception as error:  # such as SessionOver: it is this one's, and the next may fare better
                if not waiter.turn.done():
                    waiter.turn.set_exception(error)
                queue.leave(waiter)
                continue
            finally:
                queue.asking = None
            if not claims and not waiter.leaving:
                return
            waiter.answer(claims)
            queue.leave(waiter)

    async def _ask(self, queue: _Queue, asked: ClaimTasks) -> list[Claim]:
        place = self._board.place  # before the claim: a hint that is told meanwhile may be of what it did not see
        claims = await self._claim(asked)
        queue.empty_at = "" if claims or asked.limit < 1 else place
        return claims

    def _is_known_empty(self, queue: _Queue) -> bool:
        if not queue.empty_at or queue.serving is None:
            return False
        return WORK.isdisjoint(self._board.since(queue.empty_at))

    def close(self) -> None:
        """End all waiting."""
        for queue in self._queues.values():
            if queue.serving is not None:
                queue.serving.cancel()
