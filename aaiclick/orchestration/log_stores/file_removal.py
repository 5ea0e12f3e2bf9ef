"""Finding and removing log files of a directory. A missing file is no error, and links are not followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path

from aaiclick.orchestration.log_stores.contract import AT_ONCE, Gone
from aaiclick.orchestration.rules.naming.log_names import log_name, task_of_log


def remove_logs(directory: Path, task_ids: Iterable[int], runs: Iterable[tuple[int, int]]) -> Gone:
    """Remove the logs of these runs (task id, epoch), and of each task the name that stands for its newest log."""
    return remove(directory, [*(log_name(*run) for run in runs), *map(log_name, task_ids)])


def remove(directory: Path, names: Iterable[str]) -> Gone:
    """Remove these files from the directory; if one cannot be removed, go on with the others."""
    files = 0
    trouble: OSError | None = None
    for name in names:
        try:
            os.unlink(os.path.join(directory, name))
        except FileNotFoundError:
            continue
        except OSError as error:
            trouble = error
        else:
            files += 1
    return Gone(files, trouble)


def old_logs(directory: Path, before_s: float) -> Iterator[dict[str, int]]:
    """Yield the logs last written before `before_s` (Unix time), as {name: task id}, AT_ONCE at a time."""
    named = _named(directory, lambda facts: facts.st_mtime < before_s)
    while some := dict(islice(named, AT_ONCE)):
        yield some


def logs_of(directory: Path, task_ids: Collection[int]) -> set[str]:
    """Return the names of the logs in the directory that belong to these tasks."""
    wanted = set(task_ids)
    return {name for name, task in _named(directory, lambda _: True) if task in wanted} if wanted else set()


def _named(directory: Path, chosen: Callable[[os.stat_result], bool]) -> Iterator[tuple[str, int]]:
    try:
        listed = os.scandir(directory)
    except FileNotFoundError:
        return
    with listed:
        for entry in listed:
            task = task_of_log(entry.name)
            if task is None:
                continue
            try:
                if not entry.is_dir(follow_symlinks=False) and chosen(entry.stat(follow_symlinks=False)):
                    yield entry.name, task
            except FileNotFoundError:  # removed meanwhile
                continue
