"""The services that a worker offers to its runs: registering tables, remembered results, and counting slots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aaiclick.backoff import Backoff
from aaiclick.clock import Clock
from aaiclick.errors import ClaimLost
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim

if TYPE_CHECKING:
    from aaiclick.orchestration.coordinator.contract import Coordinator

ANSWER_S_MAX = 60.0
"""The timeout of a call to the coordinator, after which it is made again on another connection."""

T = TypeVar("T")


class RunServices(Protocol):
    """The requests of a run while its body is running."""

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """Register tables that the run may create. Return the name of this installation.

        Raises ClaimLost if the run's claim is no longer live.
        """

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        """Complete the run with the result that is remembered under this key, if there is one.

        Raises ClaimLost if the run's claim is no longer live.
        """

    async def slots(self) -> int:
        """Return how many bodies all live workers together can run at a time."""

    async def callback(self, claim: Claim, digest: str) -> str | None:
        """Accept callbacks with the token of this digest, if it is not empty; return what has been called back.

        Raises ClaimLost if the run's claim is no longer live.
        """


class WorkerServices:
    """The services of a worker: they call the coordinator, and repeat failed calls until there is an answer."""

    def __init__(self, coordinator: Coordinator, clock: Clock, noted: Callable[[tuple[int, int]], None]) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._noted = noted
        self._home: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Make the running event loop the one from which the coordinator is called."""
        self._home = asyncio.get_running_loop()

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """Register tables. The call is made on the worker's loop: a body on a thread may have a loop of its own."""
        return await self._at_home(self._hold(claim, tables))

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        """Ask for a remembered result. The call is made on the worker's loop."""
        self._noted((claim.task_id, claim.epoch))  # a hit gives the task tables, and its answer may be lost
        what = f"task {claim.task_id}: asking for a remembered result"
        return await self._at_home(self._until_answered(what, lambda: self._coordinator.recall(claim, key)))

    async def slots(self) -> int:
        """Return the number of slots of all live workers."""
        return await self._at_home(self._until_answered("counting the slots", self._coordinator.slots))

    async def callback(self, claim: Claim, digest: str) -> str | None:
        """Accept and look for callbacks. The call is made on the worker's loop, as that of `hold`."""
        what = f"task {claim.task_id}: looking for its callback"
        return await self._at_home(self._until_answered(what, lambda: self._coordinator.callback(claim, digest)))

    async def _at_home(self, asking: Coroutine[Any, Any, T]) -> T:
        if self._home is None or self._home is asyncio.get_running_loop():
            return await asking
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking, self._home))

    async def _hold(self, claim: Claim, tables: Sequence[str]) -> str:
        self._noted((claim.task_id, claim.epoch))  # before the call, since its answer may be lost
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
