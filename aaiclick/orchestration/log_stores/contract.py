"""The contract of log stores. Their methods block: coroutines call them on threads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Protocol

PART_BYTES_MAX = 1_000_000
"""The maximum number of bytes that one read returns."""

AT_ONCE = 500
"""How many old logs are listed at a time."""


class LogPart(NamedTuple):
    """Bytes of a log, its current size in bytes, and a number of the attempt: each attempt has its own."""

    data: bytes
    size: int
    file: int
    complete: bool = True
    """False while a worker has yet to send the rest of the log."""


class Gone(NamedTuple):
    """How many files or objects were removed, and the last error of one that was not."""

    files: int
    trouble: Exception | None = None


class LogStore(Protocol):
    """Logs by (task, epoch). Logs have names of the form `{task_id}.{epoch}.log`; see `rules/naming/log_names`."""

    def place_of(self, task_id: int, epoch: int) -> str:
        """Return the path or the address of a log, for people."""

    def read(
        self, task_id: int, epoch: int | None = None, *, offset: int = 0, limit: int = PART_BYTES_MAX
    ) -> LogPart | None:
        """Return bytes of the log of an attempt, the newest by default; None if there is no such log.

        A negative offset counts from the end. At most `PART_BYTES_MAX` bytes are returned.
        """

    def write(self, task_id: int, epoch: int, offset: int, data: bytes, *, last: bool = False) -> int:
        """Add bytes at an offset, and return how long the log is now.

        Bytes that the log has already are left out, and bytes behind its end are not taken, so a call may be repeated.
        With `last`, and if all bytes were taken, the log is complete. Raises OSError if the store cannot be written.
        """

    def remove(self, names: Iterable[str]) -> Gone:
        """Remove the logs with these names; if one cannot be removed, go on with the others."""

    def remove_runs(self, task_ids: Iterable[int], runs: Iterable[tuple[int, int]]) -> Gone:
        """Remove the logs of these runs, (task, epoch), which belong to these tasks."""

    def old(self, before_s: float) -> Iterator[dict[str, int]]:
        """Yield the logs last written before `before_s` (Unix time), as {name: task id}, AT_ONCE at a time."""

    def names_of(self, task_ids: Collection[int]) -> set[str]:
        """Return the names of the logs of these tasks."""
