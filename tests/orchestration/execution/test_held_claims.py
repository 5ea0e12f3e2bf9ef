"""A claim that a server holds, and its recall: claims that were made in that moment are found."""

from __future__ import annotations

import asyncio
from typing import Any

from aaiclick.orchestration.execution.held_claims import held_claim
from aaiclick.orchestration.models import Claim

CLAIM = Claim(1, 1, 7, 1, None, "t", "m:t", "{}", 0, None)


class Server:
    """Holds claims, and notes how it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.held = asyncio.Event()
        self.work: asyncio.Future[list[Claim]] = asyncio.get_running_loop().create_future()
        self.cancelled = False

    async def claim(self, **options: Any) -> list[Claim]:
        self.asked.append(options)
        if not options.get("wait_s"):
            return [CLAIM] if options.get("again") else []
        self.held.set()
        try:
            return await self.work
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def test_what_is_held_comes_when_there_is_work() -> None:
    server, recalled = Server(), asyncio.Event()
    asking = asyncio.create_task(held_claim(server.claim, 20, recalled, lambda: False))
    await server.held.wait()
    server.work.set_result([CLAIM])
    assert await asking == [CLAIM]
    assert server.asked == [{"wait_s": 20}]


async def test_who_recalls_a_claim_asks_what_it_brought() -> None:
    server, recalled = Server(), asyncio.Event()
    asking = asyncio.create_task(held_claim(server.claim, 20, recalled, lambda: False))
    await server.held.wait()
    recalled.set()
    assert await asking == [CLAIM]
    assert server.asked == [{"wait_s": 20}, {"again": True}]
    assert server.cancelled


async def test_who_was_recalled_before_does_not_wait() -> None:
    server, recalled = Server(), asyncio.Event()
    recalled.set()
    assert await held_claim(server.claim, 20, recalled, lambda: True) == []
    assert server.asked == [{}]


async def test_who_is_given_up_leaves_nothing_behind() -> None:
    server = Server()
    asking = asyncio.create_task(held_claim(server.claim, 20, asyncio.Event(), lambda: False))
    await server.held.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert server.cancelled
