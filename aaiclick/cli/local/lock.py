"""One fleet for a local root: whoever runs it holds a lock, which the system frees however the process ends."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aaiclick.errors import ConfigError

FILE = "local.lock"
BYTES_MAX = 32


@contextmanager
def only_fleet_of(root: Path) -> Iterator[None]:
    """Be the only fleet of this root, or say which process is."""
    descriptor = _open(root / FILE)
    try:
        _lock(descriptor, root)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        cause = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise _unusable(file.parent, f"{file} cannot be opened: {cause}", "") from error


def _lock(descriptor: int, root: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        said = os.pread(descriptor, BYTES_MAX, 0)
        holder = f"process {int(said)}" if said.isdigit() else "a process that is still starting"
        hint = "Stop it first, or set AAICLICK_LOCAL_ROOT to another directory."
        raise _unusable(root, f"`aaiclick local start` runs there already ({holder})", hint) from None


def _unusable(root: Path, rule: str, hint: str) -> ConfigError:
    return ConfigError(setting="AAICLICK_LOCAL_ROOT", value=str(root), rule=rule, hint=hint)
