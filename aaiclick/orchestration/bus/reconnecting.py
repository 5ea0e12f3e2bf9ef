"""What buses over a server share: one asyncio task that owns the connection, and connects again whenever it is lost."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager

from aaiclick.backoff import Backoff, said
from aaiclick.orchestration.bus.local import ALL_HINTS, LocalBus
from aaiclick.urls import mask_url

FLUSH_S_MAX = 2.0
PAUSE_S_MIN, PAUSE_S_MAX = 0.1, 5.0
"""Bounds of the pause before the next attempt to connect. It doubles each time."""

log = logging.getLogger(__name__)


class ReconnectingBus(LocalBus):
    """Carries hints through a server. Subclasses say how one conversation with it goes, in `_converse`.

    `url` names the room within the process, `server_url` is where the server is.
    """

    def __init__(self, url: str, server_url: str) -> None:
        super().__init__(url)
        self._server_url = server_url
        self._outgoing: set[str] = set()
        self._todo = asyncio.Event()
        """Set when there are hints to send, when listening begins, and when the connection is lost."""
        self._settled = asyncio.Event()
        """Set when all hints are sent, and while the connection is out of order; `flush` waits for it."""
        self._backoff = Backoff()
        self._task: asyncio.Task[None] | None = None

    async def _converse(self) -> None:
        """Connect, then send and receive hints until the connection is lost, which raises, or the bus is closed."""
        raise NotImplementedError

    def _pass_on(self, words: frozenset[str]) -> None:
        if not self._closed:
            self._outgoing |= words
            self._go()

    async def listen(self) -> None:
        await super().listen()
        if not self._closed:
            self._go()
            await self.flush()

    async def flush(self) -> None:
        if self._task is not None:
            with _patience():
                async with asyncio.timeout(FLUSH_S_MAX):
                    await self._settled.wait()

    async def close(self) -> None:
        await super().close()
        if self._task is not None:
            self._todo.set()  # a client may swallow the cancellation: then the conversation sees that it is closed
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def _go(self) -> None:
        if not self.trouble:
            self._settled.clear()
        self._todo.set()
        if self._task is None:
            self._task = self._loop.create_task(self._serve(), name="aaiclick-bus")

    async def _serve(self) -> None:
        pause_s = PAUSE_S_MIN
        while not self._closed:
            began = self._loop.time()
            try:
                await self._converse()
            except Exception as error:
                self._fall_silent(error)
            if self._loop.time() - began > PAUSE_S_MAX:
                pause_s = PAUSE_S_MIN
            # jitter: the processes must not all reconnect at once when the server comes back
            await asyncio.sleep(random.uniform(0.5, 1) * pause_s)  # noqa: S311 (no secret)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def _taken(self) -> frozenset[str]:
        """Take the hints to send; an empty set, and all is settled, if there are none. `_put_back` undoes it."""
        words = frozenset(self._outgoing)
        self._outgoing.clear()
        if not words:
            self._settled.set()
        return words

    def _put_back(self, words: frozenset[str]) -> None:
        self._outgoing |= words

    def _recover(self) -> None:
        if self.trouble:
            self.trouble = ""
            self._backoff.over()
            self._hear(ALL_HINTS)  # any hint may have been missed while disconnected

    def _fall_silent(self, error: Exception) -> None:
        self.trouble = said(error)
        self._backoff.met(f"sending and receiving wake-ups through {mask_url(self._server_url)}", error)
        self._settled.set()


@contextmanager
def _patience() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        log.debug("A wake-up is late.")
