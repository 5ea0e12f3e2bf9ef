"""`aaiclick registered-job`, `register-job`, `job enable|disable`: the catalogue and its schedules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from aaiclick.cli.afar import afar, refuse
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, say, show_facts, show_json, show_table
from aaiclick.errors import InputError, NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from aaiclick.orchestration.models import RegisteredJob
    from aaiclick.representations.schedules.registered_jobs import RegisteredJobAnswer

COLUMNS = ("name", "enabled", "schedule", "timezone", "next_run_at", "entrypoint")

app = typer.Typer(rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The registered job's name.")]
Kwargs = Annotated[str | None, typer.Option(metavar="JSON", help='Arguments, as in \'{"key": "val"}\'.')]
Preservation = Annotated[str | None, typer.Option(help="NONE or FULL.")]

Needed = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=AMOUNT", help="What each of its tasks needs, such as gpu=1; repeatedly."),
]


def register_job(
    entrypoint: Annotated[str, typer.Argument(help="The function to run, as in my_flows.nightly.")],
    name: Annotated[
        str | None, typer.Option(help="The name of the registered job; by default that of the function.")
    ] = None,
    schedule: Annotated[str | None, typer.Option(help='When to run it, as in "0 8 * * *".')] = None,
    kwargs: Kwargs = None,
    preservation_mode: Preservation = None,
    timezone: Annotated[str | None, typer.Option(help="The schedule's time zone; by default UTC.")] = None,
    missed_runs: Annotated[str | None, typer.Option(help="Which missed times run: none, latest or all.")] = None,
    missed_max: Annotated[int | None, typer.Option(help="How many missed times run at most, with all.")] = None,
    overlap: Annotated[
        str | None, typer.Option(help="What to do while an earlier run goes on: allow, skip or queue.")
    ] = None,
    time_kwarg: Annotated[
        str | None,
        typer.Option(help="The parameter that receives each run's time; two (start,end) receive its interval."),
    ] = None,
    priority: Annotated[int | None, typer.Option(help="The priority of its tasks: higher ones run first.")] = None,
    timeout_s: Annotated[
        float | None, typer.Option(help="A run fails if it has not ended after this many seconds.")
    ] = None,
    fail_fast: Annotated[
        bool | None, typer.Option(help="Whether the first critical failure ends a run; by default as its @job says.")
    ] = None,
    keep_last: Annotated[
        int | None, typer.Option(help="Keep this many ended runs, however old, and remove all others.")
    ] = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Register it as disabled: it does not fire.")] = False,
    placement: Annotated[
        str | None, typer.Option(help="Where its tasks may run: 'memory_gb >= 32', or PlacementConstraints as JSON.")
    ] = None,
    resource: Needed = None,
    update: Annotated[
        bool, typer.Option("--update", help="Change the registered job if the name exists already.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add a job to the catalogue, with or without a schedule."""
    given = {
        "name": entrypoint.rpartition(".")[2] if name is None else name,
        "entrypoint": entrypoint,
        "schedule": schedule,
        "default_kwargs": read_kwargs(kwargs),
        "preservation_mode": preservation_mode,
        "timezone": timezone,
        "missed_runs": missed_runs,
        "missed_max": missed_max,
        "overlap": overlap,
        "time_kwarg": time_kwarg,
        "priority": priority,
        "timeout_s": timeout_s,
        "fail_fast": fail_fast,
        "keep_last": keep_last,
        "placement": _placement(placement),
        "resources": _resources(resource),
    }
    _show(wait_for(_register(given, False if disabled else None, update)), as_json)


def _placement(typed: str | None) -> Any:
    """Return a placement as it is given in Python: JSON as what it says, other texts as they are."""
    return read_kwargs(typed) if typed is not None and typed.lstrip().startswith("{") else typed


def _resources(typed: list[str] | None) -> dict[str, float] | None:
    from aaiclick.orchestration.rules.resources import read_resource  # here, to keep start-up light

    return None if typed is None else dict(map(read_resource, typed))


async def _register(given: dict[str, Any], enabled: bool | None, update: bool) -> dict[str, Any]:
    if (api := afar()) is not None:
        if not update:
            refuse("aaiclick register-job without --update", "a server creates the entry, or replaces it")
        name, entrypoint = given.pop("name"), given.pop("entrypoint")
        return dict(await api.register_job(name, entrypoint, **given, enabled=enabled))
    from aaiclick.orchestration import registered_jobs as front  # here, to keep start-up light
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light

    async with orch_context():
        given["default_kwargs"] = await converted_kwargs(given["default_kwargs"], given["name"], given["entrypoint"])
        if update:
            entry = await front.upsert_registered_job(**given, enabled=enabled)
        else:
            entry = await front.register_job(**given, enabled=enabled is None)
        return _detail(entry, await front.next_runs(entry.name))


def _detail(entry: RegisteredJob, times: list[datetime]) -> dict[str, Any]:
    from aaiclick.representations.schedules.registered_jobs import registered_job_detail  # here, to keep start-up light

    return dict(registered_job_detail(entry, times))


@app.command("list")
def list_(
    enabled_only: Annotated[bool, typer.Option("--enabled-only", help="Only enabled ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """List registered jobs by name."""
    entries = wait_for(_list(enabled_only))
    if as_json:
        show_json({"registered_jobs": entries})
        return
    show_table(COLUMNS, [[entry[column] for column in COLUMNS] for entry in entries])
    say({0: "no registered jobs", 1: "1 registered job"}.get(len(entries), f"{len(entries)} registered jobs"))


async def _list(enabled_only: bool) -> list[Any]:
    if (api := afar()) is not None:
        return list((await api.list_registered_jobs(enabled_only=enabled_only))["registered_jobs"])
    from aaiclick.orchestration.registered_jobs import list_registered_jobs  # here, to keep start-up light
    from aaiclick.representations.schedules.registered_jobs import registered_job_here  # here, to keep start-up light

    return [registered_job_here(entry) for entry in await list_registered_jobs(enabled_only)]


@app.command()
def get(name: Name, as_json: AsJson = False) -> None:
    """Show a registered job with its next times."""
    _show(wait_for(_get(name)), as_json)


async def _get(name: str) -> dict[str, Any]:
    if (api := afar()) is not None:
        return dict(await api.get_registered_job(name))
    from aaiclick.orchestration import registered_jobs as front  # here, to keep start-up light
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light

    async with orch_context():
        entry = await front.get_registered_job(name)
        if entry is None:
            hint = "See: aaiclick registered-job list"
            raise NotFound(what="registered job", field="name", value=name[:50], hint=hint)
        return _detail(entry, await front.next_runs(name))


def enable(name: Name, as_json: AsJson = False) -> None:
    """Enable a registered job: it fires from now on, and missed times do not run."""
    _switch(name, True, as_json)


def disable(name: Name, as_json: AsJson = False) -> None:
    """Disable a registered job: it no longer fires, and runs that have begun continue."""
    _switch(name, False, as_json)


def _switch(name: str, enabled: bool, as_json: bool) -> None:
    facts = wait_for(_switched(name, enabled))
    if as_json:
        show_json(facts)
        return
    then = f"; it fires next at {facts['next_run_at']}" if facts["next_run_at"] else ""
    say(f"Registered job {name!r} is {'enabled' if enabled else 'disabled'}{then}.")


async def _switched(name: str, enabled: bool) -> RegisteredJobAnswer:
    if (api := afar()) is not None:
        return await (api.enable_job if enabled else api.disable_job)(name)
    from aaiclick.orchestration import registered_jobs as front  # here, to keep start-up light
    from aaiclick.representations.schedules.registered_jobs import registered_job_here  # here, to keep start-up light

    return registered_job_here(await (front.enable_job if enabled else front.disable_job)(name))


# ---------------------------------------------------------------- what is typed


def read_kwargs(text: str | None) -> dict[str, Any] | None:
    """Return the object given as `--kwargs`; None if nothing was given."""
    if text is None:
        return None
    try:
        found = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_each_once)
    except ValueError as error:
        _refuse_kwargs(text, f"it is not JSON ({error})")
    except RecursionError:
        _refuse_kwargs(text, "it is nested too deeply")
    if not isinstance(found, dict):
        _refuse_kwargs(text, "it is not an object")
    return found


async def converted_kwargs(
    kwargs: dict[str, Any] | None, name: str, entrypoint: str | None = None
) -> dict[str, Any] | None:
    """Return the arguments converted to the annotations of the function, by default that of the registered job."""
    from aaiclick.orchestration.checks import json_arguments  # here, to keep start-up light
    from aaiclick.orchestration.registered_jobs import get_registered_job  # here, to keep start-up light

    if not kwargs:
        return kwargs
    if entrypoint is None:
        entry = await get_registered_job(name)
        entrypoint = None if entry is None else entry.entrypoint
    return kwargs if entrypoint is None else json_arguments(entrypoint, kwargs)


def _refuse_kwargs(text: str, rule: str) -> NoReturn:
    from aaiclick.orchestration.rules.validation import shorten  # here, to keep start-up light

    hint = """Write it as in '{"key": "val"}'."""
    raise InputError(field="--kwargs", value=shorten(text), rule=rule, hint=hint) from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values with one name, the first would be forgotten silently."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place]))
        raise ValueError(f"{twice[:50]!r} is given twice")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


# ---------------------------------------------------------------- what is shown


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(facts)
        return
    if "default_kwargs" in facts:  # a server does not tell them
        facts["default_kwargs"] = json.dumps(facts["default_kwargs"], ensure_ascii=False)
    show_facts(facts | {f"next {number}": time for number, time in enumerate(facts.pop("next_runs", ()), 1)})
