"""A socket that rests where the machine has no descriptor left, and a log that says so once."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from typing import Any

from aaiclick.clock import SYSTEM_CLOCK

REST_S = 0.5
"""The loop itself tries again after a second. Until then it is told that nobody waits: else, on some versions of
Python, it asks and logs two thousand times in a row."""

TURN_MAX = 16
"""So many are taken in at a time: who has to go for them has gone before the next."""

SAID_EVERY_S = 60.0
SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log = logging.getLogger("aaiclick.server")


class Listener(socket.socket):
    """A socket that listens, the same as another one."""

    _rests_until = 0.0
    _turn = 0

    @classmethod
    def of(cls, listening: socket.socket) -> Listener:
        """The same socket, with a descriptor of its own: the other one is for its owner to close."""
        return cls(listening.family, listening.type, listening.proto, fileno=os.dup(listening.fileno()))

    def accept(self) -> tuple[socket.socket, Any]:
        """The next one who waits; nobody, for a while after there was no descriptor for them."""
        if SYSTEM_CLOCK.monotonic() < self._rests_until or self._turn >= TURN_MAX:
            raise BlockingIOError
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._turn += 1
        try:
            return super().accept()
        except OSError as error:
            if error.errno in SCARCE:
                self._rests_until = SYSTEM_CLOCK.monotonic() + REST_S
            raise

    def _next_turn(self) -> None:
        self._turn = 0


class ScarceOnce:
    """Hears what the loop has to complain of: that there are no descriptors is one line, now and then."""

    def __init__(self) -> None:
        self._says_at, self._kept = 0.0, 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in SCARCE and "accept" in context.get("message", "")):
            loop.default_exception_handler(context)
            return
        now, self._kept = SYSTEM_CLOCK.monotonic(), self._kept + 1
        if now >= self._says_at:
            log.warning(
                "no new connections for now: %s; it is tried again every second (%d times so far)",
                error.strerror,
                self._kept,
            )
            self._says_at = now + SAID_EVERY_S
