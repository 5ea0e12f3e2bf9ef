"""Where a run asks before it touches tables: they are held for it, and those it makes are known before they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from aaiclick.clock import Clock
from aaiclick.errors import ClaimLost
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.trouble import Trouble
from aaiclick.orchestration.models import Claim


class Desk(Protocol):
    """What a run may ask while its body goes on."""

    async def hold(self, claim: Claim, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        """Use these tables, and perhaps make those; gives what this installation is called.

        Refused (ClaimLost) where the run is not its task's any more.
        """


class WorkersDesk:
    """The worker's: it asks the state, again and again until there is an answer."""

    def __init__(self, coordinator: Coordinator, clock: Clock, noted: Callable[[tuple[int, int]], None]) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._noted = noted
        self._home: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """It is in this loop that the state is asked."""
        self._home = asyncio.get_running_loop()

    async def hold(self, claim: Claim, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        """A body on a thread may have a loop of its own: the question goes to the worker's."""
        asking = self._hold(claim, inputs, outputs)
        if self._home is None or self._home is asyncio.get_running_loop():
            return await asking
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking, self._home))

    async def _hold(self, claim: Claim, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        self._noted((claim.task_id, claim.epoch))  # before: the answer may be lost
        trouble = Trouble()
        while True:
            try:
                return await self._coordinator.hold(claim, inputs=inputs, outputs=outputs)
            except ClaimLost:
                raise
            except Exception as error:
                trouble.met(f"task {claim.task_id}: its tables cannot be held", error)
                await self._clock.sleep(trouble.pause_s)
