"""A listening socket that pauses when the process or the machine has no file descriptors left."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Any

from aaiclick.backoff import Backoff
from aaiclick.clock import SYSTEM_CLOCK

REST_S = 0.5
"""Seconds during which `accept` reports no connections after a failure; asyncio tries again after a second. Without
the pause, some versions of Python call it and log the error two thousand times in a row."""

TURN_MAX = 16
"""Connections accepted per turn of the event loop, so that those closed to make room are gone before the next."""

SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Listener(socket.socket):
    """A duplicate of a listening socket, with a limited `accept`."""

    _rests_until = 0.0
    _turn = 0
    _backoff: Backoff

    @classmethod
    def of(cls, listening: socket.socket) -> Listener:
        """Return the same socket with a descriptor of its own: the caller still has to close the other one."""
        taken = cls(listening.family, listening.type, listening.proto, fileno=os.dup(listening.fileno()))
        taken._backoff = Backoff()
        return taken

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Raise BlockingIOError during a pause, or after TURN_MAX connections in one turn."""
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
    """Exception handler of the event loop: drop accept errors that `Listener` has logged, and pass on all others."""
    error = context.get("exception")
    if not (isinstance(error, OSError) and error.errno in SCARCE and "accept" in context.get("message", "")):
        loop.default_exception_handler(context)
