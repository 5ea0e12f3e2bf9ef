"""File names of run logs, made of integers only, so that none can point outside the log directory."""

from __future__ import annotations

import re

_NAME = re.compile(r"([1-9][0-9]{0,18})(?:\.([0-9]{1,10}))?\.log", re.ASCII)


def log_name(task_id: int, epoch: int | None = None) -> str:
    """Return the file name of one attempt's log, or of the newest attempt's if epoch is None."""
    return f"{task_id:d}.log" if epoch is None else f"{task_id:d}.{epoch:d}.log"


def task_of_log(name: str) -> int | None:
    """Return the id of the task whose log has this name; None if it is not a log's name."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])


def run_of_log(name: str) -> tuple[int, int] | None:
    """Return (task, epoch) of the attempt whose log has this name; None if it is not the name of an attempt's log."""
    found = _NAME.fullmatch(name)
    return None if found is None or found[2] is None else (int(found[1]), int(found[2]))
