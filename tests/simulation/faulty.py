"""A coordinator over a network that repeats itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.models import Claim, Held, Orders, Receipt, Report
from aaiclick.orchestration.models import Worker as Registered
from aaiclick.orchestration.models.cached import CacheAnswer, CacheKey
from tests.simulation.state import Away
from tests.simulation.world import World

T = TypeVar("T")

Call = tuple[int, dict[str, Any]]
"""Whose it was, and what else it said."""

REPEATED = 0.03
"""How often the network brings a request twice; the first answer is dropped."""


class FaultyCoordinator:
    """The worker's verbs, over a network that repeats itself; what is lost on it, the database below loses."""

    def __init__(self, world: World, inner: Coordinator, *, repeated: float) -> None:
        self.world = world
        self.inner = inner
        self.repeated = repeated
        self.beats: list[Call] = []
        self.claims: list[Call] = []
        self.deaf_until = 0.0
        """Until when no beat of this one gets through, though everything else does."""

    async def _send(self, call: Callable[[], Awaitable[T]]) -> T:
        if self.repeated and not self.world.is_calm and self.world.dice.random() < self.repeated:
            self.world.counts["repeated"] += 1
            try:
                await call()
            except (AaiclickError, Away):
                self.world.counts["repeated in vain"] += 1
        return await call()

    async def register(self, **facts: Any) -> Registered:
        return await self._send(lambda: self.inner.register(**facts | {"hostname": "simulated", "pid": 1}))

    async def beat(self, worker_id: int, **facts: Any) -> Orders:
        if self.world.loop.time() < self.deaf_until and not self.world.is_calm:
            self.world.counts["beats cut"] += 1
            raise Away("only beats are cut")
        told = {name: fact for name, fact in facts.items() if name != "renewed"}  # the network brings no answer again
        self.beats = [*self.beats[-10:], (worker_id, told)]
        return await self._send(lambda: self.inner.beat(worker_id, **facts))

    async def deregister(self, worker_id: int) -> bool:
        return await self._send(lambda: self.inner.deregister(worker_id))

    async def claim(self, worker_id: int, **facts: Any) -> list[Claim]:
        self.claims = [*self.claims[-10:], (worker_id, facts)]
        claims = await self._send(lambda: self.inner.claim(worker_id, **facts))
        self.world.claimed(claims, facts["lanes"])
        return claims

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        self.world.sent.append((worker_id, tuple(reports)))

        async def call() -> Receipt:
            receipt = await self.inner.report(worker_id, reports)
            self.world.received(worker_id, reports, receipt)
            return receipt

        return await self._send(call)

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        return await self._send(lambda: self.inner.release(worker_id, claims))

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        return await self._send(lambda: self.inner.hold(claim, tables))

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        return await self._send(lambda: self.inner.recall(claim, key))

    async def slots(self) -> int:
        return await self._send(self.inner.slots)

    async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
        await self._send(lambda: self.inner.let_go(worker_id, runs))

    async def reconcile(self, job_id: int | None = None) -> float | None:
        return await self._send(lambda: self.inner.reconcile(job_id))


def stale_beat(facts: dict[str, Any]) -> dict[str, Any]:
    """A beat as it would be brought again, without what it counts."""
    held: list[Held] = list(facts.get("held") or [])
    return {"known_call": facts.get("known_call", 0), "held": held}
