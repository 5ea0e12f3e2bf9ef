"""Wake-ups within one process, without the database. The other buses extend `LocalBus` to reach other processes."""

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
"""The minimum time between two messages to other processes. Hints told in between go in one message."""


class Room:
    """The buses of this process that use the same URL.

    They hear each other directly. `token` marks the messages of this process, so that their echo is ignored.
    """

    def __init__(self) -> None:
        self.token = secrets.token_hex(6)
        self.listeners: set[LocalBus] = set()

    def pack(self, words: Iterable[str]) -> str:
        """Encode these hints as a message to other processes."""
        return f"{self.token} {','.join(sorted(words))}"

    def unpack(self, message: str) -> frozenset[str]:
        """Return the known hints in a message; an empty set if this process sent it."""
        token, _, words = message.partition(" ")
        return frozenset() if token == self.token else ALL_HINTS.intersection(words.split(","))


_rooms: WeakValueDictionary[str, Room] = WeakValueDictionary()
_lock = threading.Lock()


def _room(url: str) -> Room:
    with _lock:
        return _rooms.setdefault(url, Room())


def _leave_the_rooms() -> None:
    """Reset the registry in a forked child: the buses registered in it belong to the parent."""
    global _rooms, _lock
    _rooms, _lock = WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_leave_the_rooms)


class LocalBus:
    """Carries hints between all event loops and threads of this process that use the same URL."""

    def __init__(self, url: str) -> None:
        self._room = _room(url)
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._heard: set[str] = set()
        self._something = asyncio.Event()
        self._listening = False
        self._closed = False
        self.trouble = ""

    def tell(self, hints: Iterable[str]) -> None:
        """Send these hints; any thread may call this. Words that are not in `rules/naming/hints` are dropped."""
        words = ALL_HINTS.intersection(hints)
        if not words or self._closed:
            return
        with _lock:
            listeners = list(self._room.listeners)
        for each in listeners:
            each._at_home(each._hear, words)
        self._at_home(self._pass_on, words)

    async def flush(self) -> None:
        """Return at once: within the process nothing is buffered."""

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
        """Stop listening. A pending `wait` returns an empty set."""
        self._closed = True
        self._listening = False
        with _lock:
            self._room.listeners.discard(self)
        self._heard.clear()
        self._something.set()

    def _pass_on(self, words: frozenset[str]) -> None:
        """Send these hints to other processes. Does nothing here; subclasses override it."""

    def _hear(self, words: Iterable[str]) -> None:
        if self._listening:
            self._heard.update(words)
            if self._heard:
                self._something.set()

    def _at_home(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run the call on the bus's own event loop: directly if this is its thread, else scheduled there."""
        if threading.get_ident() == self._thread_id:
            call(*arguments)
            return
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # the loop was closed and the bus was not
            with _lock:
                self._room.listeners.discard(self)
