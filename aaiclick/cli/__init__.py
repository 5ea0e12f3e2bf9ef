"""The command line: it reads what was typed, calls the front door and prints the answer; it decides nothing.

Nothing heavy is imported before it is needed: `aaiclick --help` loads no database library.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any

import typer

from aaiclick import __version__
from aaiclick.cli import (
    backfills,
    data,
    dlq,
    doctor,
    errors,
    graph,
    history,
    job,
    local,
    logs,
    metrics,
    migrate,
    parent,
    prune,
    registered_job,
    run_job,
    server,
    setup,
    task,
    token,
    worker,
)
from aaiclick.cli.output import show_text

COMPLETION = "_AAICLICK_COMPLETE"
"""Set by the shell where it asks how a line may go on."""

app = typer.Typer(
    name="aaiclick",
    help="Durable, distributed data workflows from plain Python functions.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("setup")(setup.setup)
app.command("doctor")(doctor.doctor)
app.command("metrics")(metrics.metrics)
app.command("prune")(prune.prune)
app.command("audit")(history.audit)
app.command("register-job")(registered_job.register_job)
app.command("run-job")(run_job.run_job)
job.app.command("logs")(logs.job_logs)
job.app.command("graph")(graph.graph)
job.app.command("tasks")(history.tasks)
job.app.command("events")(history.events)
job.app.command("enable")(registered_job.enable)
job.app.command("disable")(registered_job.disable)
registered_job.app.command("backfill")(backfills.backfill)
registered_job.app.command("backfills")(backfills.list_)
registered_job.app.command("get-backfill")(backfills.get)
registered_job.app.command("cancel-backfill")(backfills.cancel)
registered_job.app.command("fires")(backfills.fires)
task.app.command("runs")(history.runs)
app.add_typer(migrate.app, name="migrate")
app.add_typer(job.app, name="job")
app.add_typer(registered_job.app, name="registered-job")
app.add_typer(task.app, name="task")
app.add_typer(dlq.app, name="dlq")
app.add_typer(local.app, name="local")
app.add_typer(worker.app, name="worker")
app.add_typer(worker.background, name="background")
app.add_typer(data.app, name="data")
app.add_typer(server.app, name="server")
app.add_typer(token.app, name="token")


def _show_version(asked: bool) -> None:
    if asked:
        show_text(f"aaiclick {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    part_of: Annotated[
        int | None, typer.Option("--part-of", hidden=True, metavar="PID", help="End with this process, our parent.")
    ] = None,
) -> None:
    errors.show_tracebacks(debug)
    if part_of is not None:
        parent.become_part_of(part_of)


def main() -> None:
    """The command `aaiclick`: run what was typed and end the process with the exit code of its outcome."""
    atexit.register(errors.end_undisturbed)
    typed = sys.argv[1:] or ["--help"]
    asked = app if COMPLETION in os.environ else narrowed(typed)
    sys.exit(errors.run(lambda: asked(typed, prog_name="aaiclick", standalone_mode=False)))


def narrowed(typed: Sequence[str]) -> typer.Typer:
    """The command with the verbs of the noun that was typed: of others, nobody asks more than what they are about.

    To read the signatures of all commands takes longer than all else that `aaiclick --help` does by itself.
    """
    asked = next((word for word in typed if word in {group.name for group in app.registered_groups}), None)
    narrow = copy(app)
    narrow.registered_groups = [
        group if group.name == asked else _without_verbs(group) for group in app.registered_groups
    ]
    return narrow


def _without_verbs(group: Any) -> Any:
    outside = copy(group)
    outside.typer_instance = typer.Typer(help=group.typer_instance.info.help, rich_markup_mode=None)
    return outside
