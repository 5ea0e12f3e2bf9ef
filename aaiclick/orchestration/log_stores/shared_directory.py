"""A directory that all machines share, such as one on NFS: `{tasks}/{task_id}/{epoch}.log`.

Workers on all machines and the server write to it, so it has no links and no large folders: the newest attempt is the
file with the highest number in its task's folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from aaiclick.orchestration.log_stores.contract import AT_ONCE, PART_BYTES_MAX, Gone, LogPart
from aaiclick.orchestration.log_stores.log_files import add_to_file, read_file
from aaiclick.orchestration.rules.naming.log_names import log_name, run_of_log

FILE_MODE, FOLDER_MODE = 0o660, 0o770
"""As far as the umask allows: workers and servers may be different users of one group."""

FOLDERS = 1000
"""Folders into which the tasks are divided by the last digits of their ids."""

_EPOCH = re.compile(r"([0-9]{1,10})\.log", re.ASCII)


class SharedDirectory:
    """Implements `LogStore` on a directory of many machines."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def place_of(self, task_id: int, epoch: int) -> str:
        return os.path.join(self._folder(task_id), f"{epoch:d}.log")

    def read(
        self, task_id: int, epoch: int | None = None, *, offset: int = 0, limit: int = PART_BYTES_MAX
    ) -> LogPart | None:
        found = max(self._epochs(self._folder(task_id)), default=None) if epoch is None else epoch
        return None if found is None else read_file(self.place_of(task_id, found), offset, limit)

    def write(self, task_id: int, epoch: int, offset: int, data: bytes, *, last: bool = False) -> int:
        path = self.place_of(task_id, epoch)
        try:
            return add_to_file(path, offset, data, last=last, mode=FILE_MODE)[0]
        except FileNotFoundError:  # the folder of the task: made by its first log
            os.makedirs(os.path.dirname(path), mode=FOLDER_MODE, exist_ok=True)
            return add_to_file(path, offset, data, last=last, mode=FILE_MODE)[0]

    def remove(self, names: Iterable[str]) -> Gone:
        files = 0
        trouble: OSError | None = None
        for run in filter(None, map(run_of_log, names)):
            path = self.place_of(*run)
            try:
                os.unlink(path)
                files += 1
                os.rmdir(os.path.dirname(path))
            except FileNotFoundError:
                continue
            except OSError as error:
                if os.path.lexists(path):  # else it is the folder, with the logs of other attempts
                    trouble = error
        return Gone(files, trouble)

    def remove_runs(self, task_ids: Iterable[int], runs: Iterable[tuple[int, int]]) -> Gone:
        return self.remove(log_name(*run) for run in runs)

    def old(self, before_s: float) -> Iterator[dict[str, int]]:
        found = self._all(lambda facts: facts.st_mtime < before_s)
        while some := dict(islice(found, AT_ONCE)):
            yield some

    def names_of(self, task_ids: Collection[int]) -> set[str]:
        return {log_name(task, epoch) for task in task_ids for epoch in self._epochs(self._folder(task))}

    def _folder(self, task_id: int) -> str:
        return os.path.join(self.directory, f"{task_id % FOLDERS:03d}", f"{task_id:d}")

    def _epochs(self, folder: str) -> list[int]:
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [int(found[1]) for name in names if (found := _EPOCH.fullmatch(name))]

    def _all(self, chosen: Callable[[os.stat_result], bool]) -> Iterator[tuple[str, int]]:
        for number in range(FOLDERS):
            for task in _numbers(os.path.join(self.directory, f"{number:03d}")):
                for epoch in self._epochs(self._folder(task)):
                    with suppress(FileNotFoundError):  # removed meanwhile
                        if chosen(os.stat(self.place_of(task, epoch), follow_symlinks=False)):
                            yield log_name(task, epoch), task


def _numbers(folder: str) -> list[int]:
    """Return the ids of the tasks that have a folder in this one."""
    try:
        return [int(name) for name in os.listdir(folder) if name.isascii() and name.isdigit()]
    except FileNotFoundError:
        return []
