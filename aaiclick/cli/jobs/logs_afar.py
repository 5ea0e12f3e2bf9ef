"""Logs of tasks, read through a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from aaiclick.cli.afar import afar
from aaiclick.cli.jobs.log_printing import NOTHING_HERE, Printer
from aaiclick.cli.output import say, show_json
from aaiclick.errors import InputError, NotFound
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.client import AsyncAPIClient

TAIL_BYTES_MAX = 1_000_000


async def task_logs(task_id: int, epoch: int | None, tail: int | None, follow: bool, as_json: bool) -> None:
    """Print the log of a task."""
    api = _api()
    task = await api.get_task(task_id)
    await _check_epoch(api, task_id, task["epoch"], epoch)
    if follow and epoch is not None:
        raise InputError(field="--epoch", value=epoch, rule="through a server only the newest is followed", hint="")
    printer = Printer(as_json and follow)
    data, end = await _read(api, task_id, epoch, tail)
    if as_json and not follow:
        from aaiclick.representations.logs import log_end, task_log  # here, to keep start-up light

        told = log_end(data, end, end - len(data))
        if not told["text"] and epoch is None and tail != 0:
            told["text"] = task["traceback"] or ""
        show_json(task_log(task_id, epoch, told))
        return
    if follow:
        begins_at = 0
        if tail is not None:
            printer.write(data, task_id)
            begins_at = end
        async for part in api.follow_log(task_id, offset=begins_at):
            printer.write(part, task_id)
        task = await api.get_task(task_id)
    else:
        printer.write(data, task_id)
    if not printer.wrote and epoch is None and tail != 0 and task["traceback"]:
        printer.write(task["traceback"].encode(), task_id)  # its log is elsewhere, or it never began
    printer.finish()
    if not printer.wrote:
        say(NOTHING_HERE)


async def job_logs(job_id: int, failed: bool, tail: int | None, as_json: bool) -> None:
    """Print the logs of a job's tasks, each under its name."""
    printer = Printer(as_json)
    silent = await _print_job(_api(), job_id, failed, tail, printer)
    printer.finish()
    if silent or not printer.wrote:
        say(f"{counted(silent, 'task')}: {NOTHING_HERE}" if silent else NOTHING_HERE)


async def _print_job(api: AsyncAPIClient, job_id: int, failed: bool, tail: int | None, printer: Printer) -> int:
    """Print the logs that are there; return how many tasks have none."""
    silent = 0
    async for told in api.iter_job_tasks(job_id, status="failed" if failed else None):
        task = SimpleNamespace(**{**told, "id": int(told["id"])})
        data, _ = await _read(api, task.id, None, tail)
        if not data and failed:
            data = ((await api.get_task(task.id))["traceback"] or "").encode()
        if data:
            printer.write(data, task.id, task)
        else:
            silent += 1
    return silent


async def _read(api: AsyncAPIClient, task_id: int, epoch: int | None, lines: int | None) -> tuple[bytes, int]:
    """Return a log, or its last lines; and where that ends."""
    if lines is None:
        data = b"".join([part async for part in api.iter_log(task_id, epoch=epoch)])
        return data, len(data)
    try:
        found = await api.read_log(task_id, epoch=epoch, offset=-TAIL_BYTES_MAX)
    except NotFound:
        return b"", 0
    kept = found.data.splitlines(keepends=True)[-lines:] if lines else []
    return b"".join(kept), max(0, found.size - TAIL_BYTES_MAX) + len(found.data)


async def _check_epoch(api: AsyncAPIClient, task_id: int, newest: int, epoch: int | None) -> None:
    """An attempt that there never was is no empty log."""
    if epoch is None or epoch == newest:
        return
    known = [run["epoch"] for run in (await api.list_task_runs(task_id))["runs"]]
    if epoch not in known:
        hint = f"Its attempts are: {', '.join(map(str, known[-20:]))}." if known else "No attempt at it has ended yet."
        raise NotFound(what=f"attempt at task {task_id}", field="epoch", value=epoch, hint=hint)


def _api() -> Any:
    api = afar()
    assert api is not None, "only asked through a server"
    return api
