"""`aaiclick task logs`, `aaiclick job logs`: what tasks have written.

A terminal gets control codes as escapes, so that a log cannot steer it. Files and pipes get the bytes as they are.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.event_loop import with_id
from aaiclick.cli.jobs.job import JobId
from aaiclick.cli.jobs.why import TaskId
from aaiclick.cli.output import AsJson, harmless, is_terminal, printable, say, show_json, show_text
from aaiclick.errors import InputError, NotFound
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Task
    from aaiclick.representations.logs import LogEnd

NOTHING_HERE = "nothing was written yet, or the log is on another machine"

Tail = Annotated[int | None, typer.Option(min=0, metavar="LINES", help="Only the last lines.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is written, until the end.")]


def task_logs(
    task_id: TaskId,
    epoch: Annotated[int | None, typer.Option(min=0, help="Of this attempt; by default of the newest.")] = None,
    tail: Tail = None,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Print what a task has written."""
    with_id("task", task_id, lambda wanted: _task_logs(wanted, epoch, tail, follow, as_json))


async def _task_logs(task_id: int, epoch: int | None, tail: int | None, follow: bool, as_json: bool) -> None:
    from aaiclick.orchestration.queries import log_following  # here, to keep start-up light
    from aaiclick.orchestration.queries.log_following import LogPosition  # here, to keep start-up light
    from aaiclick.orchestration.tasks import get_traceback  # here, to keep start-up light
    from aaiclick.representations.logs import task_log  # here, to keep start-up light

    await _check_epoch(await _get_task(task_id), epoch)
    printer = Printer(as_json and follow)
    if as_json and not follow:
        end = await _read_end(task_id, epoch, tail)
        if not end["text"] and epoch is None and tail != 0:
            end["text"] = await get_traceback(task_id) or ""
        show_json(task_log(task_id, epoch, end))
        return
    if not follow:
        async for data in log_following.read_whole(task_id, epoch, lines=tail):
            printer.write(data, task_id)
    else:
        start = LogPosition(0)
        if tail is not None:
            data, start = await log_following.read_tail(task_id, epoch, lines=tail)
            printer.write(data, task_id)
        async for data in log_following.follow_log(task_id, epoch, start=start):
            printer.write(data, task_id)
    if not printer.wrote and epoch is None and tail != 0 and (traceback := await get_traceback(task_id)):
        printer.write(traceback.encode(), task_id)  # its log is elsewhere, or it never began
    printer.finish()
    if not printer.wrote:
        say(NOTHING_HERE)


async def _read_end(task_id: int, epoch: int | None, tail: int | None) -> LogEnd:
    """A log as it is now, or its last lines."""
    from aaiclick.orchestration.queries import log_following  # here, to keep start-up light
    from aaiclick.representations.logs import log_end  # here, to keep start-up light

    if tail is None:
        data = b"".join([part async for part in log_following.read_whole(task_id, epoch)])
        return log_end(data, len(data), 0)
    data, place = await log_following.read_tail(task_id, epoch, lines=tail)
    return log_end(data, place.offset, place.offset - len(data))


async def _get_task(task_id: int) -> Task:
    from aaiclick.orchestration.tasks import get_task  # here, to keep start-up light

    task = await get_task(task_id)
    if task is None:
        raise NotFound(what="task", field="id", value=task_id, hint="")
    return task


async def _check_epoch(task: Task, epoch: int | None) -> None:
    """An attempt that there never was is no empty log."""
    from aaiclick.orchestration.tasks import get_runs_for_task  # here, to keep start-up light

    if epoch is None or epoch == task.epoch:
        return
    known = [run.epoch for run in await get_runs_for_task(task.id)]
    if epoch not in known:
        hint = f"It has: {', '.join(map(str, known[-20:]))}." if known else "No attempt at it has ended yet."
        raise NotFound(what=f"attempt at task {task.id}", field="epoch", value=epoch, hint=hint)


def job_logs(
    job_id: JobId,
    failed: Annotated[bool, typer.Option("--failed", help="Only of tasks that failed.")] = False,
    tail: Tail = None,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Print what the tasks of a job have written, each under its name."""
    if failed and follow:
        raise InputError(field="--failed", value="given", rule="it does not go with --follow", hint="")
    with_id("job", job_id, lambda wanted: _job_logs(wanted, failed, tail, follow, as_json))


async def _job_logs(job_id: int, failed: bool, tail: int | None, follow: bool, as_json: bool) -> None:
    from aaiclick.orchestration.queries import log_following  # here, to keep start-up light
    from aaiclick.orchestration.rules.states import TaskStatus  # here, to keep start-up light
    from aaiclick.orchestration.tasks import get_traceback  # here, to keep start-up light

    printer, silent = Printer(as_json), 0
    if follow:
        pieces = log_following.follow_job_logs(job_id, lines=tail)
    else:
        pieces = log_following.read_job_logs(job_id, status=TaskStatus.FAILED if failed else None, lines=tail)
    async for task, data in pieces:
        if data:
            printer.write(data, task.id, task)
        elif failed and (traceback := await get_traceback(task.id)):
            printer.write(traceback.encode(), task.id, task)
        else:
            silent += 1
    printer.finish()
    if silent or not printer.wrote:
        say(f"{counted(silent, 'task')}: {NOTHING_HERE}" if silent else NOTHING_HERE)


class Printer:
    """Writes pieces of logs: as they are, escaped on a terminal, or each as a line of JSON."""

    def __init__(self, as_json: bool) -> None:
        self.wrote = False
        self._as_json = as_json
        self._is_terminal = is_terminal()
        self._task: int | None = None
        self._mid_line = False
        self._halves: dict[int, bytes] = {}

    def write(self, data: bytes, task_id: int, task: Any = None) -> None:
        """A piece of a task's log; with the task, under a line that names it, where another one begins."""
        if not data:
            return
        self.wrote = True
        if self._as_json:
            self._tell(task_id, self._decode(data, task_id), task)
        else:
            if task is not None and task_id != self._task:
                self._begin(task)
            self._put(data, task_id)
        self._task = task_id
        if sys.stdout is not None:
            sys.stdout.flush()

    def _tell(self, task_id: int, text: str, task: Any = None) -> None:
        from aaiclick.representations.logs import log_piece  # here, to keep start-up light

        show_json(log_piece(task_id, text, task))

    def _begin(self, task: Any) -> None:
        if self._mid_line:
            show_text("")
        if self._task is not None:
            show_text("")
        show_text(f"==> {printable(task.name)} ({task.id}, {task.status}) <==")

    def _put(self, data: bytes, task_id: int) -> None:
        self._mid_line = not data.endswith(b"\n")
        raw = getattr(sys.stdout, "buffer", None)
        if raw is not None and not self._is_terminal:
            sys.stdout.flush()
            raw.write(data)
        elif sys.stdout is not None:
            sys.stdout.write(harmless(self._decode(data, task_id)))

    def _decode(self, data: bytes, task_id: int) -> str:
        """As text; a character that is cut off waits for its other half."""
        data, self._halves[task_id] = _whole_characters(self._halves.pop(task_id, b"") + data)
        return data.decode(errors="replace")

    def finish(self) -> None:
        """Characters whose other half never came are shown as what they are: broken."""
        for task_id, half in self._halves.items():
            if half and self._as_json:
                self._tell(task_id, half.decode(errors="replace"))
            elif half:
                sys.stdout.write(half.decode(errors="replace"))
        self._halves.clear()


def _whole_characters(data: bytes) -> tuple[bytes, bytes]:
    """The data without a character of UTF-8 that is cut off at its end, and that."""
    for length in range(1, min(4, len(data)) + 1):
        byte = data[-length]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return (data[:-length], data[-length:]) if length < needed else (data, b"")
        if byte < 0x80:
            break
    return data, b""
