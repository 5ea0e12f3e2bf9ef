"""Where a run asks before it makes tables: they are known before they are there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from aaiclick.backoff import Backoff
from aaiclick.clock import Clock
from aaiclick.errors import ClaimLost
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.models import Claim

ANSWER_S_MAX = 60.0
"""After so long a question is given up, and asked again on another connection."""

T = TypeVar("T")


class RunServices(Protocol):
    """What a run may ask while its body goes on."""

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """Perhaps make these tables; gives what this installation is called.

        Refused (ClaimLost) where the run is not its task's any more.
        """

    async def slots(self) -> int:
        """How many bodies all live workers run at a time."""


class WorkerServices:
    """The worker's: it asks the state, again and again until there is an answer."""

    def __init__(self, coordinator: Coordinator, clock: Clock, noted: Callable[[tuple[int, int]], None]) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._noted = noted
        self._home: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """It is in this loop that the state is asked."""
        self._home = asyncio.get_running_loop()

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """A body on a thread may have a loop of its own: the question goes to the worker's."""
        return await self._at_home(self._hold(claim, tables))

    async def slots(self) -> int:
        """Those of the whole fleet."""
        return await self._at_home(self._until_answered("counting the slots", self._coordinator.slots))

    async def _at_home(self, asking: Coroutine[Any, Any, T]) -> T:
        if self._home is None or self._home is asyncio.get_running_loop():
            return await asking
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking, self._home))

    async def _hold(self, claim: Claim, tables: Sequence[str]) -> str:
        self._noted((claim.task_id, claim.epoch))  # before: the answer may be lost
        what = f"task {claim.task_id}: holding its tables"
        return await self._until_answered(what, lambda: self._coordinator.hold(claim, tables))

    async def _until_answered(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        backoff = Backoff(self._clock)
        while True:
            try:
                async with asyncio.timeout(ANSWER_S_MAX):
                    answer = await ask()
                backoff.over()
                return answer
            except ClaimLost:
                raise
            except Exception as error:
                backoff.met(what, error)
                await self._clock.sleep(backoff.pause_s)
