"""`aaiclick task logs`, `aaiclick job logs`: what tasks have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.afar import afar, refuse
from aaiclick.cli.event_loop import with_id
from aaiclick.cli.jobs import logs_afar
from aaiclick.cli.jobs.job import JobId
from aaiclick.cli.jobs.log_printing import NOTHING_HERE, Printer
from aaiclick.cli.jobs.why import TaskId
from aaiclick.cli.output import AsJson, say, show_json
from aaiclick.errors import InputError, NotFound
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Task
    from aaiclick.representations.logs import LogEnd

Tail = Annotated[int | None, typer.Option(min=0, metavar="LINES", help="Only this many last lines.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Follow the output until the end.")]


def task_logs(
    task_id: TaskId,
    epoch: Annotated[int | None, typer.Option(min=0, help="The log of this attempt; by default of the newest.")] = None,
    tail: Tail = None,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Print the log of a task."""
    print_log = logs_afar.task_logs if afar() is not None else _task_logs
    with_id("task", task_id, lambda wanted: print_log(wanted, epoch, tail, follow, as_json))


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
        hint = f"Its attempts are: {', '.join(map(str, known[-20:]))}." if known else "No attempt at it has ended yet."
        raise NotFound(what=f"attempt at task {task.id}", field="epoch", value=epoch, hint=hint)


def job_logs(
    job_id: JobId,
    failed: Annotated[bool, typer.Option("--failed", help="Only logs of tasks that failed.")] = False,
    tail: Tail = None,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Print the logs of a job's tasks, each under its name."""
    if failed and follow:
        raise InputError(field="--failed", value="given", rule="it cannot be combined with --follow", hint="")
    if afar() is None:
        with_id("job", job_id, lambda wanted: _job_logs(wanted, failed, tail, follow, as_json))
        return
    if follow:
        refuse("aaiclick job logs --follow", "a server follows one task at a time, as task logs --follow does")
    with_id("job", job_id, lambda wanted: logs_afar.job_logs(wanted, failed, tail, as_json))


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
