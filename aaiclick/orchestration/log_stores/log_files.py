"""One log in one file. While the rest of it is on its way, the file has the sticky bit, which means nothing else there.

No symbolic link is followed, so that none can expose or overwrite another file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress

from aaiclick.orchestration.log_stores.contract import PART_BYTES_MAX, LogPart

UNFINISHED = stat.S_ISVTX

_ABSENT = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EACCES)


def read_file(path: str, offset: int, limit: int) -> LogPart | None:
    """Return bytes of a file; None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return None
        size = facts.st_size
        start = max(0, size + offset) if offset < 0 else offset
        data = os.pread(descriptor, min(limit, PART_BYTES_MAX), start)
        return LogPart(data, size, facts.st_ino, not facts.st_mode & UNFINISHED)
    finally:
        os.close(descriptor)


def add_to_file(path: str, offset: int, data: bytes, *, last: bool, mode: int) -> tuple[int, bool]:
    """Add bytes to a file as `LogStore.write` says. Return its size, and whether it was created."""
    created = False
    try:
        descriptor = os.open(path, _FLAGS | os.O_EXCL, mode | UNFINISHED)
        created = True
    except FileExistsError:
        descriptor = os.open(path, _FLAGS, mode)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # the same bytes may be sent to two servers at once
        if created:
            os.fchmod(descriptor, mode | UNFINISHED)  # some systems leave the bit out when they create a file
        size = os.fstat(descriptor).st_size
        new = data[size - offset :] if offset <= size else b""
        while new:
            written = os.pwrite(descriptor, new, size)
            size, new = size + written, new[written:]
        if last and offset + len(data) == size:
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
    return size, created


_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def point(directory: str, name: str, newest: str) -> None:
    """Make `newest` another name of a file of the directory. What had that name is replaced, never written through.

    It is a hard link, so that readers which refuse symbolic links can open it, and so that it survives the removal of
    the first name.
    """
    passing = os.path.join(directory, f".{name}.new")
    with suppress(FileNotFoundError):
        os.unlink(passing)
    try:
        os.link(os.path.join(directory, name), passing, follow_symlinks=False)
    except OSError:  # a file system without hard links
        os.symlink(name, passing)
    os.replace(passing, os.path.join(directory, newest))
