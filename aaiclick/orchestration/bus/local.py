"""Wake-ups within one process, without the database. The other buses are this one, and carry its words further."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakValueDictionary

from aaiclick.orchestration.rules.naming import hints as vocabulary

ALL_HINTS: frozenset[str] = frozenset(word for name, word in vars(vocabulary).items() if name.isupper())

GAP_S = 0.01
"""The least time between two messages to other processes: what is told meanwhile travels together."""


class Room:
    """The buses of this process that share a database: they hear each other here, and ignore the echo from outside."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(6)
        self.listeners: set[LocalBus] = set()

    def pack(self, words: Iterable[str]) -> str:
        """These words as a message to other processes."""
        return f"{self.token} {','.join(sorted(words))}"

    def unpack(self, message: str) -> frozenset[str]:
        """What a message says: nothing if it is our own, or if no word of it is known."""
        token, _, words = message.partition(" ")
        return frozenset() if token == self.token else ALL_HINTS.intersection(words.split(","))


_rooms: WeakValueDictionary[str, Room] = WeakValueDictionary()
_lock = threading.Lock()


def _room(url: str) -> Room:
    with _lock:
        return _rooms.setdefault(url, Room())


def _leave_the_rooms() -> None:
    """In a forked child: those in the rooms are in the parent."""
    global _rooms, _lock
    _rooms, _lock = WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_leave_the_rooms)


class LocalBus:
    """Between all event loops and threads of this process that use the same URL."""

    def __init__(self, url: str) -> None:
        self._room = _room(url)
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._heard: set[str] = set()
        self._something = asyncio.Event()
        self._listening = False
        self._closed = False

    def tell(self, hints: Iterable[str]) -> None:
        """Any thread may. Words that are not in `rules/naming/hints` are left out."""
        words = ALL_HINTS.intersection(hints)
        if not words or self._closed:
            return
        with _lock:
            listeners = list(self._room.listeners)
        for each in listeners:
            each._at_home(each._hear, words)
        self._at_home(self._pass_on, words)

    async def flush(self) -> None:
        """Nothing is on its way."""

    async def listen(self) -> None:
        if not self._closed:
            self._listening = True
            with _lock:
                self._room.listeners.add(self)

    async def wait(self, timeout_s: float) -> frozenset[str]:
        if not self._heard:
            self._something.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._something.wait()
            except TimeoutError:
                return frozenset()
        heard, self._heard = frozenset(self._heard), set()
        return heard

    async def close(self) -> None:
        """Whoever waits is woken, with nothing."""
        self._closed = True
        self._listening = False
        with _lock:
            self._room.listeners.discard(self)
        self._heard.clear()
        self._something.set()

    def _pass_on(self, words: frozenset[str]) -> None:
        """Carry these to other processes."""

    def _hear(self, words: Iterable[str]) -> None:
        if self._listening:
            self._heard.update(words)
            if self._heard:
                self._something.set()

    def _at_home(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call this on the event loop that the bus belongs to: now, if we are there."""
        if threading.get_ident() == self._thread_id:
            call(*arguments)
            return
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # that loop has ended, and nobody closed the bus
            with _lock:
                self._room.listeners.discard(self)
