"""Reading the log of a run, also while the run is going on."""

from __future__ import annotations

from aaiclick.config import settings
from aaiclick.errors import LogsUnreachable
from aaiclick.orchestration.log_stores.contract import PART_BYTES_MAX, LogPart
from aaiclick.orchestration.log_stores.opening import log_store

__all__ = ["PART_BYTES_MAX", "LogPart", "read_log"]


def read_log(task_id: int, epoch: int | None = None, *, offset: int = 0, limit: int = PART_BYTES_MAX) -> LogPart | None:
    """Return bytes of the log of an attempt, the newest by default; None if the log store has no such log.

    A negative offset counts from the end. At most `PART_BYTES_MAX` bytes are returned.
    """
    try:
        return log_store().read(task_id, epoch, offset=offset, limit=limit)
    except OSError as error:
        raise LogsUnreachable(place=settings().log_store or str(settings().log_dir), cause=error) from error
