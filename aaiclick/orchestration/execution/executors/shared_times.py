"""The times of the cut-off in shared memory: a worker writes them, its nursery and children read them.

A paused worker cannot send messages, but the times it wrote last can still be read. They are of the monotonic clock,
which all processes of a machine share.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import weakref

_TIMES = struct.Struct("dd")


class SharedTimes:
    """The times at which bodies are asked to end and are killed; infinite until the first `write`.

    `fd` is the descriptor of existing shared memory; with None it is created.
    """

    def __init__(self, fd: int | None = None) -> None:
        fresh = fd is None
        self.fd = _new() if fd is None else fd
        weakref.finalize(self, os.close, self.fd)  # not closed earlier: the heartbeat may write after the executor ends
        self._map = mmap.mmap(self.fd, _TIMES.size)
        if fresh:
            self.write(float("inf"), float("inf"))

    def write(self, ask_at: float, kill_at: float) -> None:
        _TIMES.pack_into(self._map, 0, ask_at, kill_at)

    @property
    def ask_at(self) -> float:
        return float(_TIMES.unpack_from(self._map)[0])

    @property
    def kill_at(self) -> float:
        return float(_TIMES.unpack_from(self._map)[1])


def _new() -> int:
    """Return the descriptor of an unnamed file of the right size."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("aaiclick")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, _TIMES.size)
    return fd
