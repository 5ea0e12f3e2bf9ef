"""Two times that a worker writes and that its nursery and children read, in memory that they share.

A worker that is paused can tell nobody anything; what it wrote last is there. Both are of the machine's monotonic
clock, which all processes of it share.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import weakref

_TIMES = struct.Struct("dd")


class SharedTimes:
    """When bodies are asked to end, and when they are killed."""

    def __init__(self, fd: int | None = None) -> None:
        fresh = fd is None
        self.fd = _new() if fd is None else fd
        weakref.finalize(self, os.close, self.fd)  # a heart may still write when nobody reads any more
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
    """A file of that size that has no name."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("aaiclick")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, _TIMES.size)
    return fd
