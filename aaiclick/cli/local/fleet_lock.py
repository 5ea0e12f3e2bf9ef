"""The first seat on a local root: one fleet has it, and with it the server; those beside it wait for it.

It is a lock on a file, which the system frees however the process ends. The file says who has it, and where that one's
server is.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from aaiclick.errors import ConfigError

FILE = "local.lock"
BYTES_MAX = 512


class Holder(NamedTuple):
    """The fleet that holds the lock, as far as its file says."""

    pid: int | None = None
    server: str | None = None


class FleetLock:
    """The lock of one root, as seen by this fleet."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.is_ours = False

    def take(self) -> bool:
        """Take the lock, if it is free."""
        if not self.is_ours:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            self.is_ours = True
            self._say(str(os.getpid()))
        return True

    def tell_server(self, url: str) -> None:
        """Write the address of our server into the lock file."""
        if self.is_ours:
            self._say(f"{os.getpid()} {url}")

    def holder(self) -> Holder:
        """Return the fleet that holds the lock."""
        pid, _, server = os.pread(self._descriptor, BYTES_MAX, 0).decode("utf-8", "replace").partition(" ")
        return Holder(int(pid), server or None) if pid.isdecimal() else Holder()

    def leave(self) -> None:
        """Release the lock."""
        if self.is_ours:
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def _say(self, text: str) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)


@contextmanager
def lock_of(root: Path) -> Iterator[FleetLock]:
    """Return the lock of this root: taken if it was free, else to be waited for."""
    seat = FleetLock(_open(root / FILE))
    try:
        seat.take()
        yield seat
    finally:
        seat.leave()


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        cause = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
        rule = f"{file} cannot be opened: {cause}"
        raise ConfigError(setting="AAICLICK_LOCAL_ROOT", value=str(file.parent), rule=rule, hint="") from error
