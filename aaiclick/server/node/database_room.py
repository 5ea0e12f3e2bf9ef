"""How many calls of workers may be in the database at a time. Heartbeats and reports come before claims."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

WAITING_MAX = 500
"""Heartbeats and reports that wait for their turn; more are told to come back."""

WAIT_S_MAX = 5.0
"""Seconds for which one waits at most."""

AGAIN_S = (1.0, 3.0)
"""Those who are sent away are told to come back after a time between these."""


class Busy(Exception):
    """There is no room now; `again_s`: after how many seconds to ask again."""

    def __init__(self) -> None:
        self.again_s = random.uniform(*AGAIN_S)  # they would all come back at once  # noqa: S311 (no secret)
        super().__init__("Too many calls of workers are in the database already.")


class DatabaseRoom:
    """A limited number of places. Some are kept for what is urgent, which also may wait in a queue."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.kept = max(1, places // 4)
        """Places that only urgent calls may take."""
        self.taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def place(self, *, urgent: bool) -> AsyncIterator[None]:
        """Hold a place inside the block; raise Busy if there is none."""
        if not urgent and self.taken >= self.places - self.kept:
            raise Busy
        if urgent and self.taken >= self.places:
            await self._turn()
        else:
            self.taken += 1
        try:
            yield
        finally:
            self._leave()

    async def _turn(self) -> None:
        """Wait until somebody hands over a place."""
        if len(self._waiting) >= WAITING_MAX:
            raise Busy
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(WAIT_S_MAX):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # the place was handed over, and nobody is here to use it
                self._leave()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise Busy from None
            raise

    def _leave(self) -> None:
        """Hand the place over to the first that waits, or free it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.taken -= 1
