"""Reading the log of a run, also while the run is going on."""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple

from aaiclick.config import settings
from aaiclick.orchestration.rules.naming.log_names import log_name

PART_BYTES_MAX = 1_000_000


class LogPart(NamedTuple):
    """Bytes of a log, its current size in bytes, and the inode of the file: each attempt has its own file."""

    data: bytes
    size: int
    file: int


def read_log(task_id: int, epoch: int | None = None, *, offset: int = 0, limit: int = PART_BYTES_MAX) -> LogPart | None:
    """Return bytes of the log of an attempt, the newest by default; None if this machine has no such file.

    A negative offset counts from the end. At most `PART_BYTES_MAX` bytes are returned. Symbolic links are not followed,
    so that none can expose another file.
    """
    path = os.path.join(settings().log_dir, log_name(task_id, epoch))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EACCES):
            return None
        raise
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return None
        size = facts.st_size
        start = max(0, size + offset) if offset < 0 else offset
        return LogPart(os.pread(descriptor, min(limit, PART_BYTES_MAX), start), size, facts.st_ino)
    finally:
        os.close(descriptor)
