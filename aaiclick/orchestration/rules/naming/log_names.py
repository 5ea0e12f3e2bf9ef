"""The names of logs: integers only, so that none can lead anywhere else."""

from __future__ import annotations

import re

_NAME = re.compile(r"([1-9][0-9]{0,18})(?:\.([0-9]{1,10}))?\.log", re.ASCII)


def log_name(task_id: int, epoch: int | None = None) -> str:
    """The file's name: of one attempt, or of the newest."""
    return f"{task_id:d}.log" if epoch is None else f"{task_id:d}.{epoch:d}.log"


def task_of_log(name: str) -> int | None:
    """The task whose log has this name; None if it is no such name."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])
