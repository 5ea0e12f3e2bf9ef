"""`aaiclick worker` and `aaiclick background`: the processes that run tasks and repair."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.jobs.job import Before
from aaiclick.cli.jobs.watching import Watch, watch
from aaiclick.cli.output import AsJson, printable, say, show_facts, show_json, show_table
from aaiclick.errors import NotFound
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.representations.workers import WorkerAnswer, WorkerPage

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
        int | None,
        typer.Option(help="How many tasks run at the same time; by default one per processor, or 100 inline."),
    ] = None,
    max_tasks: Annotated[int | None, typer.Option(help="End after this many tasks.")] = None,
    executor: Annotated[
        str, typer.Option(help="process: tasks run in child processes. inline: in the worker itself.")
    ] = "process",
    name: Annotated[str | None, typer.Option(help="A name for this worker.")] = None,
    node_name: Annotated[str | None, typer.Option(help="What to call this machine; by default its host name.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="A label of this machine; may be given repeatedly.")] = None,
    capability: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What this machine has, instead of what is found; repeatedly."),
    ] = None,
    pool: Annotated[str | None, typer.Option(help="The pool of this machine.")] = None,
    app_dir: Annotated[
        str | None, typer.Option(help="The directory of the modules with the tasks; by default the current directory.")
    ] = None,
    control: Annotated[bool, typer.Option(help="Also run the control loop, which repairs what breaks.")] = True,
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Work for the server there, without a database, with the token in AAICLICK_API_TOKEN; several with "
            "commas. As AAICLICK_COORDINATOR_URL.",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Run tasks until stopped: Ctrl-C or SIGTERM once finishes running tasks first, twice stops now."""
    _work_for(coordinator)
    from aaiclick.cli.admin.module_paths import find_modules_in  # here, to keep start-up light
    from aaiclick.orchestration.launchers.node_discovery import describe_node  # here, to keep start-up light
    from aaiclick.orchestration.launchers.worker_main import (  # here, to keep start-up light
        check_concurrency,
        worker_main_loop,
    )
    from aaiclick.orchestration.rules.nodes import read_capability  # here, to keep start-up light

    _log_to_stderr(verbose)
    given = dict(map(read_capability, capability or ()))
    node = describe_node(node_name, pool=pool, capabilities=given, labels=label or ())
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
            node=node,
            begun=lambda: _introduce(what, how, modules),
        )
    )


def _work_for(coordinator: str | None) -> None:
    """Set who coordinates, for this process and for those that it starts."""
    from aaiclick.config import reset_settings, settings  # here, to keep start-up light
    from aaiclick.errors import InputError  # here, to keep start-up light

    if coordinator is not None:
        os.environ["AAICLICK_COORDINATOR_URL"] = coordinator
        reset_settings()
    if settings().coordinator_urls and not settings().api_token:
        hint = "Make one on the server's machine, with: aaiclick token create NAME --role join"
        raise InputError(field="AAICLICK_API_TOKEN", value="nothing", rule="the server asks for a token", hint=hint)


@background.command("start")
def start_background(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Run the control loop until stopped. Several may run at once: one of them leads."""
    from aaiclick.orchestration.launchers.worker_main import background_main_loop  # here, to keep start-up light

    _log_to_stderr(verbose)
    wait_for(background_main_loop(lambda: _introduce("Control loop", "it repairs what breaks and runs no tasks")))


@background.callback()
def _background() -> None:
    """With a callback, the verb must be named."""


def _introduce(what: str, how: str, modules: str | None = None) -> None:
    """Say what was started and where it works, for people; programs find it in `worker list`."""
    from aaiclick.config import mask_url, settings  # here, to keep start-up light

    chosen = settings()
    if chosen.log_format != "json":
        say(f"{printable(what)} on {printable(socket.gethostname())}, pid {os.getpid()}: {how}.")
        state = ", ".join(chosen.coordinator_urls)
        said = f"Work comes from {printable(state)}" if state else f"State in {mask_url(chosen.sql_url)}"
        say(f"{said}, data in {mask_url(chosen.ch_url)}.")
        if modules is not None:
            say(f"Modules from {printable(modules)}, logs in {printable(str(chosen.log_dir))}. Ctrl-C to stop.")


def _log_to_stderr(verbose: bool) -> None:
    from aaiclick.telemetry.log_lines import log_to_stderr  # here, to keep start-up light

    log_to_stderr(verbose=verbose)


@app.command()
def drain(worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Ask a worker to take no new tasks, finish its running tasks, and end."""
    _ask(worker_id, "drain_worker", "is asked to finish its tasks and end", as_json)


@app.command()
def stop(
    worker_id: WorkerId,
    now: Annotated[
        bool,
        typer.Option(
            "--now", help="End its session at once: other workers run its tasks again, and its results are refused."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a worker to finish its running tasks and end."""
    if now:
        _ask(worker_id, "deregister_worker", "no longer has a session", as_json)
    else:
        _ask(worker_id, "drain_worker", "is asked to stop", as_json)


def _ask(typed: str, how: Literal["drain_worker", "deregister_worker"], said: str, as_json: bool) -> None:
    async def ask(found: int) -> tuple[int, bool]:
        if (api := afar()) is not None:
            told = await (api.drain_worker if how == "drain_worker" else api.stop_worker)(found)
            return found, told["asked"]
        from aaiclick.orchestration import workers  # here, to keep start-up light

        return found, await (workers.drain_worker if how == "drain_worker" else workers.deregister_worker)(found)

    wanted, asked = with_id("worker", typed, ask)
    if as_json:
        show_json({"id": str(wanted), "asked": asked})
    else:
        say(f"Worker {wanted} {said}." if asked else f"Worker {wanted} has stopped already.")


@app.command()
def get(worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Show a worker."""
    facts = with_id("worker", worker_id, _get)
    if as_json:
        show_json(facts)
    else:
        show_facts(facts)


async def _get(worker_id: int) -> WorkerAnswer:
    if (api := afar()) is not None:
        return await api.get_worker(worker_id)
    from aaiclick.orchestration.workers import get_worker  # here, to keep start-up light
    from aaiclick.representations.workers import worker_answer  # here, to keep start-up light

    found = await get_worker(worker_id)
    if found is None:
        raise NotFound(what="worker", field="id", value=worker_id, hint="See: aaiclick worker list")
    return worker_answer(found)


@app.command("list")
def list_(
    status: Annotated[str | None, typer.Option(help="Only workers with this status.")] = None,
    limit: Annotated[int | None, typer.Option(help="Show at most this many.")] = None,
    before: Before = None,
    watched: Watch = False,
    as_json: AsJson = False,
) -> None:
    """List workers, newest first, including those that have ended."""
    if watched:
        watch(lambda: _list(status, limit, before), lambda found: _show(found, as_json), as_json=as_json)
    else:
        _show(wait_for(_list(status, limit, before)), as_json)


async def _list(status: str | None, limit: int | None, before: int | None) -> WorkerPage:
    if (api := afar()) is not None:
        return await api.list_workers(status=status, before=before, limit=limit)
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
