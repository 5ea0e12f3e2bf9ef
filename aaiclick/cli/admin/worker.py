"""`aaiclick worker` and `aaiclick background`: the processes that run tasks and repair."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.jobs.job import Before
from aaiclick.cli.jobs.watching import Watch, watch
from aaiclick.cli.output import AsJson, printable, say, show_facts, show_json, show_table
from aaiclick.errors import NotFound
from aaiclick.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from aaiclick.orchestration.models import Worker
    from aaiclick.representations.workers import WorkerPage

COLUMNS = ("id", "name", "host", "pid", "status", "slots", "completed", "failed", "last heartbeat")
FIELDS = (
    *("id", "name", "hostname", "pid", "status", "concurrency"),
    *("tasks_completed", "tasks_failed", "last_heartbeat"),
)

app = typer.Typer(rich_markup_mode=None)
background = typer.Typer(rich_markup_mode=None)

WorkerId = Annotated[str, typer.Argument(metavar="ID", help="The worker's id, or enough of its last digits.")]


@app.command()
def start(
    concurrency: Annotated[
        int | None, typer.Option(help="Tasks at the same time; by default one for each processor, inline 100.")
    ] = None,
    max_tasks: Annotated[int | None, typer.Option(help="Leave after so many tasks.")] = None,
    executor: Annotated[
        str, typer.Option(help="process: tasks run in child processes. inline: in the worker itself.")
    ] = "process",
    name: Annotated[str | None, typer.Option(help="What to call this worker.")] = None,
    app_dir: Annotated[
        str | None, typer.Option(help="Where the modules with the tasks are; by default the current directory.")
    ] = None,
    control: Annotated[bool, typer.Option(help="Also run the control loop, which repairs what breaks.")] = True,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Run tasks until stopped: once with Ctrl-C or SIGTERM to finish first, twice to stop now."""
    from aaiclick.cli.admin.module_paths import find_modules_in  # here, to keep start-up light
    from aaiclick.orchestration.launchers.worker_main import (  # here, to keep start-up light
        check_concurrency,
        worker_main_loop,
    )

    _log_to_stderr(verbose)
    slots, modules = check_concurrency(concurrency, executor), find_modules_in(app_dir)
    where = "in child processes" if executor == "process" else "in this process"
    what, how = f"Worker{f' {name}' if name else ''}", f"{counted(slots, 'task')} at a time {where}"
    wait_for(
        worker_main_loop(
            concurrency=slots,
            max_tasks=max_tasks,
            executor=executor,
            name=name,
            control=control,
            app_dir=modules,
            begun=lambda: _introduce(what, how, modules),
        )
    )


@background.command("start")
def start_background(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Run the control loop until stopped. Any number may run: one of them leads."""
    from aaiclick.orchestration.launchers.worker_main import background_main_loop  # here, to keep start-up light

    _log_to_stderr(verbose)
    wait_for(background_main_loop(lambda: _introduce("Control loop", "it repairs what breaks, and runs no tasks")))


@background.callback()
def _background() -> None:
    """With a callback, the verb must be named."""


def _introduce(what: str, how: str, modules: str | None = None) -> None:
    """Say what was started and where it works, for people; programs find it in `worker list`."""
    from aaiclick.config import mask_url, settings  # here, to keep start-up light

    chosen = settings()
    if chosen.log_format != "json":
        say(f"{printable(what)} on {printable(socket.gethostname())}, pid {os.getpid()}: {how}.")
        say(f"State in {mask_url(chosen.sql_url)}, data in {mask_url(chosen.ch_url)}.")
        if modules is not None:
            say(f"Modules from {printable(modules)}, logs in {printable(str(chosen.log_dir))}. Ctrl-C to stop.")


def _log_to_stderr(verbose: bool) -> None:
    from aaiclick.telemetry.log_lines import log_to_stderr  # here, to keep start-up light

    log_to_stderr(verbose=verbose)


@app.command()
def drain(worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Ask a worker to finish what it runs, to take nothing new, and to leave."""
    from aaiclick.orchestration.workers import drain_worker  # here, to keep start-up light

    _ask(worker_id, drain_worker, "is asked to finish and to leave", as_json)


@app.command()
def stop(
    worker_id: WorkerId,
    now: Annotated[
        bool, typer.Option("--now", help="End its session at once: others run what it runs, its results are refused.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a worker to finish what it runs and to leave."""
    from aaiclick.orchestration.workers import deregister_worker, drain_worker  # here, to keep start-up light

    if now:
        _ask(worker_id, deregister_worker, "has no session any more", as_json)
    else:
        _ask(worker_id, drain_worker, "is asked to stop", as_json)


def _ask(typed: str, how: Callable[[int], Coroutine[Any, Any, bool]], said: str, as_json: bool) -> None:
    async def ask(found: int) -> tuple[int, bool]:
        return found, await how(found)

    wanted, asked = with_id("worker", typed, ask)
    if as_json:
        show_json({"id": str(wanted), "asked": asked})
    else:
        say(f"Worker {wanted} {said}." if asked else f"Worker {wanted} has stopped already.")


@app.command()
def get(worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Show a worker."""
    from aaiclick.representations.workers import worker_answer  # here, to keep start-up light

    facts = worker_answer(with_id("worker", worker_id, _get))
    if as_json:
        show_json(facts)
    else:
        show_facts(facts)


async def _get(worker_id: int) -> Worker:
    from aaiclick.orchestration.workers import get_worker  # here, to keep start-up light

    found = await get_worker(worker_id)
    if found is None:
        raise NotFound(what="worker", field="id", value=worker_id, hint="See: aaiclick worker list")
    return found


@app.command("list")
def list_(
    status: Annotated[str | None, typer.Option(help="Only workers of this status.")] = None,
    limit: Annotated[int | None, typer.Option(help="How many at most.")] = None,
    before: Before = None,
    watched: Watch = False,
    as_json: AsJson = False,
) -> None:
    """List workers, the newest first, also those that have left."""
    if watched:
        watch(lambda: _list(status, limit, before), lambda found: _show(found, as_json), as_json=as_json)
    else:
        _show(wait_for(_list(status, limit, before)), as_json)


async def _list(status: str | None, limit: int | None, before: int | None) -> WorkerPage:
    from aaiclick.orchestration.workers import list_workers  # here, to keep start-up light
    from aaiclick.representations.workers import worker_page  # here, to keep start-up light

    return worker_page(await list_workers(status, limit, before=before), limit)


def _show(found: WorkerPage, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    workers: list[Any] = [*found["workers"]]
    show_table(COLUMNS, [[facts[field] for field in FIELDS] for facts in workers])
    say(counted(len(workers), "worker"))
