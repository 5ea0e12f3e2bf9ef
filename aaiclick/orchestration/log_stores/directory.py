"""A directory of one machine. `{task_id}.{epoch}.log` is the log of an attempt, `{task_id}.log` that of the newest.

The worker of this machine writes its logs here by itself (`execution/logs/run_logs`); what workers elsewhere send, the
server adds.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from aaiclick.orchestration.log_stores import file_removal
from aaiclick.orchestration.log_stores.contract import PART_BYTES_MAX, Gone, LogPart
from aaiclick.orchestration.log_stores.log_files import add_to_file, point, read_file
from aaiclick.orchestration.rules.naming.log_names import log_name

FILE_MODE = 0o600

NEWER_MAX = 100
"""How many epochs beyond that of a log are looked for, before it becomes the newest of its task."""


class LocalDirectory:
    """Implements `LogStore` on a directory of this machine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def place_of(self, task_id: int, epoch: int) -> str:
        return self._path(log_name(task_id, epoch))

    def read(
        self, task_id: int, epoch: int | None = None, *, offset: int = 0, limit: int = PART_BYTES_MAX
    ) -> LogPart | None:
        return read_file(self._path(log_name(task_id, epoch)), offset, limit)

    def write(self, task_id: int, epoch: int, offset: int, data: bytes, *, last: bool = False) -> int:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        name = log_name(task_id, epoch)
        size, created = add_to_file(self._path(name), offset, data, last=last, mode=FILE_MODE)
        if created and not self._has_newer(task_id, epoch):
            point(str(self.directory), name, log_name(task_id))
        return size

    def remove(self, names: Iterable[str]) -> Gone:
        return file_removal.remove(self.directory, names)

    def remove_runs(self, task_ids: Iterable[int], runs: Iterable[tuple[int, int]]) -> Gone:
        return file_removal.remove_logs(self.directory, task_ids, runs)

    def old(self, before_s: float) -> Iterator[dict[str, int]]:
        return file_removal.old_logs(self.directory, before_s)

    def names_of(self, task_ids: Collection[int]) -> set[str]:
        return file_removal.logs_of(self.directory, task_ids)

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _has_newer(self, task_id: int, epoch: int) -> bool:
        """Return whether a later attempt has a log: what arrives late must not be taken for the newest."""
        later = range(epoch + 1, epoch + 1 + NEWER_MAX)
        return any(os.path.lexists(self.place_of(task_id, each)) for each in later)
