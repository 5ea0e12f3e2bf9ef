"""`aaiclick worker` and `aaiclick background`: the processes that run tasks and repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.job import to_id, to_time
from aaiclick.cli.loop import wait_for
from aaiclick.cli.output import AsJson, say, show_json, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aaiclick.orchestration.models import Worker

COLUMNS = ("id", "name", "host", "pid", "status", "slots", "completed", "failed", "last heartbeat")

app = typer.Typer(help="Start, stop and list workers.", rich_markup_mode=None)
background = typer.Typer(help="The control loop, without a worker.", rich_markup_mode=None)


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
    from aaiclick.cli.paths import find_modules_in  # here, to keep start-up light
    from aaiclick.orchestration.execution.main import worker_main_loop  # here, to keep start-up light

    _log_to_stderr(verbose)
    wait_for(
        worker_main_loop(
            concurrency=concurrency,
            max_tasks=max_tasks,
            executor=executor,
            name=name,
            control=control,
            app_dir=find_modules_in(app_dir),
        )
    )


@background.command("start")
def start_background(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Run the control loop until stopped. Any number may run: one of them leads."""
    from aaiclick.orchestration.execution.main import background_main_loop  # here, to keep start-up light

    _log_to_stderr(verbose)
    wait_for(background_main_loop())


@background.callback()
def _background() -> None:
    """With a callback, the verb must be named."""


def _log_to_stderr(verbose: bool) -> None:
    import logging  # here, to keep start-up light

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("aaiclick").setLevel(logging.INFO if verbose else logging.WARNING)


@app.command()
def stop(
    worker_id: Annotated[str, typer.Argument(metavar="ID", help="The worker's id.")], as_json: AsJson = False
) -> None:
    """Ask a worker to finish what it runs and to leave."""
    from aaiclick.orchestration.workers import drain_worker  # here, to keep start-up light

    wanted = to_id(worker_id, "worker")
    asked = wait_for(drain_worker(wanted))
    if as_json:
        show_json({"id": str(wanted), "asked": asked})
    else:
        say(f"Worker {wanted} is asked to stop." if asked else f"Worker {wanted} has stopped already.")


@app.command("list")
def list_(
    status: Annotated[str | None, typer.Option(help="Only workers of this status.")] = None,
    as_json: AsJson = False,
) -> None:
    """List workers, the newest first."""
    from aaiclick.orchestration.workers import list_workers  # here, to keep start-up light

    workers: Sequence[Worker] = wait_for(list_workers(status))
    if as_json:
        show_json({"workers": [to_json(worker) for worker in workers]})
        return
    show_table(COLUMNS, [tuple(_row(worker)) for worker in workers])
    say({0: "no workers", 1: "1 worker"}.get(len(workers), f"{len(workers)} workers"))


def _row(worker: Worker) -> list[Any]:
    facts = to_json(worker)
    order = "id name hostname pid status concurrency tasks_completed tasks_failed last_heartbeat"
    return [facts[field] for field in order.split()]


def to_json(worker: Worker) -> dict[str, Any]:
    """The id is a string, as in every answer."""
    return {
        "id": str(worker.id),
        "name": worker.name,
        "hostname": worker.hostname,
        "pid": worker.pid,
        "status": str(worker.status),
        "concurrency": worker.concurrency,
        "tasks_completed": worker.tasks_completed,
        "tasks_failed": worker.tasks_failed,
        "started_at": to_time(worker.started_at),
        "last_heartbeat": to_time(worker.last_heartbeat),
        "expires_at": to_time(worker.expires_at),
    }
