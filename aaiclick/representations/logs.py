"""Logs: what tasks have written."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from aaiclick.representations.fields import Form, Id


class LogEnd(TypedDict):
    """The end of a log, or the part before it."""

    text: Annotated[str, Form(description="The output of the task; bytes that are not UTF-8 are replaced.")]
    size: Annotated[int, Form(description="The current size of the whole log in bytes.")]
    begins_at: Annotated[int, Form(description="The position of the first byte of `text` in the log.")]


class TaskLog(LogEnd):
    """The log of an attempt at a task; by default of the newest."""

    task_id: Id
    epoch: int | None


class LogPiece(TypedDict):
    """A piece that was added to a log; for a job's log, with the task."""

    task_id: Id
    name: NotRequired[str]
    status: NotRequired[str]
    text: str


def log_end(data: bytes, size: int, begins_at: int) -> LogEnd:
    """Return some bytes of a log."""
    return LogEnd(text=log_text(data), size=size, begins_at=begins_at)


def task_log(task_id: int, epoch: int | None, end: LogEnd) -> TaskLog:
    """Return the log of a task."""
    return TaskLog(task_id=str(task_id), epoch=epoch, **end)


def log_piece(task_id: int, text: str, task: Any = None) -> LogPiece:
    """Return a piece of a task's log, with the task where several are followed."""
    if task is None:
        return LogPiece(task_id=str(task_id), text=text)
    return LogPiece(task_id=str(task_id), name=task.name, status=str(task.status), text=text)


def log_text(data: bytes) -> str:
    """Return bytes of a log as a text; what is no UTF-8 is written as escapes."""
    return data.decode(errors="backslashreplace")
