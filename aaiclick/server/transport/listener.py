"""A socket that rests where the machine has no descriptor left."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Any

from aaiclick.backoff import Backoff
from aaiclick.clock import SYSTEM_CLOCK

REST_S = 0.5
"""The loop itself tries again after a second. Until then it is told that nobody waits: else, on some versions of
Python, it asks and logs two thousand times in a row."""

TURN_MAX = 16
"""So many are taken in at a time: who has to go for them has gone before the next."""

SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Listener(socket.socket):
    """A socket that listens, the same as another one."""

    _rests_until = 0.0
    _turn = 0
    _backoff: Backoff

    @classmethod
    def of(cls, listening: socket.socket) -> Listener:
        """The same socket, with a descriptor of its own: the other one is for its owner to close."""
        taken = cls(listening.family, listening.type, listening.proto, fileno=os.dup(listening.fileno()))
        taken._backoff = Backoff()
        return taken

    def accept(self) -> tuple[socket.socket, Any]:
        """The next one who waits; nobody, for a while after there was no descriptor for them."""
        if SYSTEM_CLOCK.monotonic() < self._rests_until or self._turn >= TURN_MAX:
            raise BlockingIOError
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._turn += 1
        try:
            answer = super().accept()
        except OSError as error:
            if error.errno in SCARCE:
                self._rests_until = SYSTEM_CLOCK.monotonic() + REST_S
                self._backoff.met("accepting connections", error, "trying again every second")
            raise
        self._backoff.over()
        return answer

    def _next_turn(self) -> None:
        self._turn = 0


def hear_complaints(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the loop has to complain of goes to its own handler, but for what the `Listener` has told already."""
    error = context.get("exception")
    if not (isinstance(error, OSError) and error.errno in SCARCE and "accept" in context.get("message", "")):
        loop.default_exception_handler(context)
