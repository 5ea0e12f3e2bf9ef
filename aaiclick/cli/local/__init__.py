"""`aaiclick local`: everything that one machine needs to run workflows, in one command."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson

if TYPE_CHECKING:
    import socket

    from aaiclick.cli.local.fleet import Plan
    from aaiclick.cli.local.fleet_events import Tell
    from aaiclick.cli.local.fleet_lock import FleetLock

WORKERS = 2
WORKERS_MAX = 256

app = typer.Typer(rich_markup_mode=None)


@app.callback()
def _local() -> None:
    """With a callback, the verb must be named."""


@app.command()
def start(
    host: Annotated[
        str | None,
        typer.Option(help="The server's address; by default 127.0.0.1; beyond this machine it needs a token."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="The server's port; by default 8765, or any free port if that is taken."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=WORKERS_MAX, help="Worker processes.")] = WORKERS,
    concurrency: Annotated[
        int | None,
        typer.Option(
            help="Tasks of one worker at the same time; by default the workers share the processors, or 100 inline."
        ),
    ] = None,
    executor: Annotated[
        str, typer.Option(help="process: tasks run in child processes. inline: in the workers themselves.")
    ] = "process",
    app_dir: Annotated[
        str | None, typer.Option(help="The directory of the modules with the tasks; by default the current directory.")
    ] = None,
    reload: Annotated[
        bool,
        typer.Option(
            "--reload", help="When modules there change, let the workers finish their tasks and restart them."
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the data engine, the control loop, the server and workers, until Ctrl-C or SIGTERM (twice: stop now).

    Create the local root and a local database if they are missing. If a fleet runs already, work beside it.
    """
    from aaiclick.backend import ensure_root  # here, to keep start-up light
    from aaiclick.cli.admin.module_paths import find_modules_in  # here, to keep start-up light
    from aaiclick.cli.local.fleet_events import in_json, in_lines  # here, to keep start-up light
    from aaiclick.cli.local.fleet_lock import lock_of  # here, to keep start-up light
    from aaiclick.cli.local.reloading import check_watched  # here, to keep start-up light
    from aaiclick.cli.local.server_socket import open_door  # here, to keep start-up light
    from aaiclick.orchestration.launchers.worker_main import check_concurrency  # here, to keep start-up light

    if concurrency is None and executor == "process":
        concurrency = -(-(os.cpu_count() or 1) // workers)
    slots = check_concurrency(concurrency, executor)
    modules = find_modules_in(app_dir)
    watched = check_watched(modules) if reload else None
    options = ("--concurrency", str(slots), "--executor", executor, "--app-dir", modules)
    tell = in_json if as_json else in_lines
    with ExitStack() as last:
        seat = last.enter_context(lock_of(ensure_root()))
        is_beside = not seat.is_ours
        door = None if is_beside and host is None and port is None else open_door(host, port)
        if door is not None:
            last.enter_context(door)
        _tell_beginning(tell, workers, slots, modules, door, seat)
        plan = _plan(workers, options, verbose, door, modules, watched, seat if is_beside else None)
        code = wait_for(_run(plan, tell))
    raise typer.Exit(code)


def _plan(
    workers: int,
    options: tuple[str, ...],
    verbose: bool,
    door: socket.socket | None,
    modules: str,
    watched: str | None,
    seat: FleetLock | None,
) -> Plan:
    from aaiclick.backend import get_ch_url, is_chdb  # here, to keep start-up light
    from aaiclick.cli.local.fleet import Plan  # here, to keep start-up light
    from aaiclick.config import settings  # here, to keep start-up light

    return Plan(
        engine=Path(get_ch_url().removeprefix("chdb://")) if is_chdb() else None,
        workers=workers,
        worker_options=options,
        verbose=verbose,
        grace_s=settings().shutdown_grace_s,
        door=None if door is None else door.fileno(),
        server_options=("--app-dir", modules),
        watched=watched,
        seat=seat,
    )


def _tell_beginning(
    tell: Tell, workers: int, slots: int, modules: str, door: socket.socket | None, seat: FleetLock
) -> None:
    """Set up what is missing, and tell where everything is."""
    from aaiclick.backend import get_ch_url, is_chdb  # here, to keep start-up light
    from aaiclick.cli.admin.setup import set_up  # here, to keep start-up light
    from aaiclick.cli.local.server_socket import first_token  # here, to keep start-up light
    from aaiclick.config import mask_url, settings  # here, to keep start-up light
    from aaiclick.server.transport.addresses import url_of  # here, to keep start-up light

    made = wait_for(set_up())
    token = None if door is None else wait_for(first_token(door))
    server = None if door is None else f"{url_of(door)}/api/v1"
    if server is not None:
        seat.tell_server(server)
    holder = seat.holder()
    beside = {} if seat.is_ours else {"beside": holder.pid, "server_beside": holder.server}
    tell(
        "begins",
        pid=os.getpid(),
        root=made["root"],
        database=made["database"],
        data=mask_url(get_ch_url()) + ("" if is_chdb() else " (no engine is started here)"),
        logs=str(settings().log_dir),
        workers=workers,
        concurrency=slots,
        modules=modules,
        server=server,
        token_file=None if token is None else str(token),
        **beside,
    )


async def _run(plan: Plan, tell: Tell) -> int:
    from aaiclick.cli.local.fleet import Fleet  # here, to keep start-up light

    return await Fleet(plan, tell).run()
