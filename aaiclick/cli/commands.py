"""What may be typed: a table of all commands, so that only the module of the one that was typed is imported.

What `aaiclick --help` says of each stands here; of a command without a noun it is the first paragraph of its docstring.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import typer

from aaiclick.cli.afar import guarded, guarded_alone


class Place(NamedTuple):
    """Where something in this room is."""

    module: str
    name: str

    def load(self) -> Any:
        """Import it."""
        return getattr(importlib.import_module(f"aaiclick.cli.{self.module}"), self.name)


class Command(NamedTuple):
    """A command without a noun."""

    function: Place
    about: str


class Noun(NamedTuple):
    """A noun and its verbs: those of its own module, then those that are elsewhere."""

    app: Place
    about: str
    elsewhere: Mapping[str, Place] = {}


COMMANDS = {
    "setup": Command(
        Place("admin.setup", "setup"), "Create the local root, the database and its schema, where they are missing."
    ),
    "doctor": Command(Place("admin.doctor", "doctor"), "Show versions and settings, and check that everything works."),
    "metrics": Command(Place("admin.metrics", "metrics"), "Print the metrics, in the text format of Prometheus."),
    "prune": Command(
        Place("admin.prune", "prune"), "Remove jobs, logs, events and other records that have been kept long enough."
    ),
    "audit": Command(
        Place("jobs.history", "audit"),
        "List changes made from outside, newest first; a change without an outcome was cut off.",
    ),
    "register-job": Command(
        Place("jobs.registered_job", "register_job"), "Add a job to the catalogue, with or without a schedule."
    ),
    "run-job": Command(Place("jobs.run_job", "run_job"), "Run a job now."),
}

NOUNS = {
    "migrate": Noun(
        Place("admin.migrate", "app"), "Upgrade the database's schema, or look at it. Alone: upgrade head."
    ),
    "job": Noun(
        Place("jobs.job", "app"),
        "List, show, wait for, cancel and retry jobs.",
        {
            "logs": Place("jobs.logs", "job_logs"),
            "graph": Place("jobs.graph", "graph"),
            "tasks": Place("jobs.history", "tasks"),
            "events": Place("jobs.history", "events"),
            "enable": Place("jobs.registered_job", "enable"),
            "disable": Place("jobs.registered_job", "disable"),
        },
    ),
    "registered-job": Noun(
        Place("jobs.registered_job", "app"),
        "List and show registered jobs, and run past times of their schedules.",
        {
            "backfill": Place("jobs.backfills", "backfill"),
            "backfills": Place("jobs.backfills", "list_"),
            "get-backfill": Place("jobs.backfills", "get"),
            "cancel-backfill": Place("jobs.backfills", "cancel"),
            "fires": Place("jobs.backfills", "fires"),
        },
    ),
    "task": Noun(
        Place("jobs.task", "app"),
        "Show tasks and their logs, and run tasks again.",
        {"runs": Place("jobs.history", "runs")},
    ),
    "dlq": Noun(Place("jobs.dlq", "app"), "Dead letters: tasks that failed and are not tried again."),
    "cache": Noun(Place("admin.cache", "app"), "List and remove cached results of tasks."),
    "local": Noun(Place("local", "app"), "A whole fleet on this machine."),
    "node": Noun(Place("admin.node", "app"), "List, close, empty and remove the machines that run tasks."),
    "resource": Noun(Place("admin.resource", "app"), "Capacities that tasks need, and who holds what of them."),
    "worker": Noun(Place("admin.worker", "app"), "Start, drain, stop and list workers."),
    "background": Noun(Place("admin.worker", "background"), "The control loop, without a worker."),
    "data": Noun(Place("admin.data", "app"), "Look at Objects, and serve the embedded data engine."),
    "server": Noun(Place("admin.server", "app"), "The server: REST, and MCP for agents."),
    "token": Noun(Place("admin.token", "app"), "Create, list and revoke tokens of the server."),
}


def add_all(root: typer.Typer) -> None:
    """Add every command."""
    for name, command in COMMANDS.items():
        root.command(name)(guarded(name, command.function.load()))
    for name, noun in NOUNS.items():
        root.add_typer(_with_verbs(name, noun, None), name=name, help=noun.about)


def add_asked(root: typer.Typer, typed: Sequence[str]) -> None:
    """Add the command that was typed; of all others, only what they are about.

    To import all of them and read their signatures takes longer than all else that `aaiclick --help` does by itself.
    """
    place = next((place for place, word in enumerate(typed) if word in COMMANDS or word in NOUNS), len(typed))
    asked, after = typed[place:][:1], typed[place + 1 :]
    for name, command in COMMANDS.items():
        if [name] == asked:
            root.command(name)(guarded(name, command.function.load()))
        else:
            root.command(name, help=command.about)(_unasked)
    for name, noun in NOUNS.items():
        app = (
            _with_verbs(name, noun, next(iter(after), None)) if [name] == asked else typer.Typer(rich_markup_mode=None)
        )
        root.add_typer(app, name=name, help=noun.about)


def _with_verbs(called: str, noun: Noun, verb: str | None) -> typer.Typer:
    """The noun with that verb alone, or with all if it has none of that name."""
    app: typer.Typer = copy(noun.app.load())
    own = {_typed_as(each): each for each in app.registered_commands}
    is_known = verb in own or verb in noun.elsewhere
    chosen = {name: copy(each) for name, each in own.items() if name == verb or not is_known}
    for name, each in chosen.items():
        each.callback = each.callback and guarded(f"{called} {name}", each.callback)
    app.registered_commands = list(chosen.values())
    if (own_callback := copy(app.registered_callback)) is not None and own_callback.callback is not None:
        own_callback.callback = guarded_alone(called, own_callback.callback)
        app.registered_callback = own_callback
    for name, place in noun.elsewhere.items():
        if name == verb or not is_known:
            app.command(name)(guarded(f"{called} {name}", place.load()))
    return app


def _typed_as(command: Any) -> str:
    """A verb as typer names it."""
    name: str = command.name or command.callback.__name__.replace("_", "-")
    return name


def _unasked() -> None:
    """Stands for a command that was not typed."""
