"""`aaiclick registered-job`, `register-job`, `job enable|disable`: the catalogue and its schedules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, say, show_facts, show_json, show_table
from aaiclick.errors import InputError, NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from aaiclick.orchestration.models import RegisteredJob

COLUMNS = ("name", "enabled", "schedule", "timezone", "next_run_at", "entrypoint")

app = typer.Typer(rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The registered job's name.")]
Kwargs = Annotated[str | None, typer.Option(metavar="JSON", help='Arguments, as in \'{"key": "val"}\'.')]
Preservation = Annotated[str | None, typer.Option(help="NONE or FULL.")]


def register_job(
    entrypoint: Annotated[str, typer.Argument(help="What to run, as in my_flows.nightly.")],
    name: Annotated[str | None, typer.Option(help="Its name; the function's, if not given.")] = None,
    schedule: Annotated[str | None, typer.Option(help='When to run it, as in "0 8 * * *".')] = None,
    kwargs: Kwargs = None,
    preservation_mode: Preservation = None,
    timezone: Annotated[str | None, typer.Option(help="The schedule's time zone; UTC, if not given.")] = None,
    missed_runs: Annotated[str | None, typer.Option(help="Times that nobody noticed: none, latest or all.")] = None,
    missed_max: Annotated[int | None, typer.Option(help="How many of them run with all.")] = None,
    overlap: Annotated[str | None, typer.Option(help="While an earlier run goes on: allow, skip or queue.")] = None,
    time_kwarg: Annotated[str | None, typer.Option(help="Gets each run's time; two (start,end) its interval.")] = None,
    priority: Annotated[int | None, typer.Option(help="Which of its tasks come first: higher ones.")] = None,
    timeout_s: Annotated[float | None, typer.Option(help="Seconds after which a run that has not ended fails.")] = None,
    fail_fast: Annotated[
        bool | None, typer.Option(help="Whether the first critical failure ends a run; else as its @job says.")
    ] = None,
    keep_last: Annotated[int | None, typer.Option(help="Keep so many ended runs, however old, and no others.")] = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Do not let it fire yet.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Change the entry if there is one of that name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a job to the catalogue, with a schedule or without."""
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
    }
    entry, times = wait_for(_register(given, False if disabled else None, update))
    _show(entry, times, as_json)


async def _register(given: dict[str, Any], enabled: bool | None, update: bool) -> tuple[RegisteredJob, list[datetime]]:
    from aaiclick.orchestration import registered_jobs as front  # here, to keep start-up light
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light

    async with orch_context():
        given["default_kwargs"] = await converted_kwargs(given["default_kwargs"], given["name"], given["entrypoint"])
        if update:
            entry = await front.upsert_registered_job(**given, enabled=enabled)
        else:
            entry = await front.register_job(**given, enabled=enabled is None)
        return entry, await front.next_runs(entry.name)


@app.command("list")
def list_(
    enabled_only: Annotated[bool, typer.Option("--enabled-only", help="Only those that are enabled.")] = False,
    as_json: AsJson = False,
) -> None:
    """List registered jobs by name."""
    from aaiclick.orchestration.registered_jobs import list_registered_jobs  # here, to keep start-up light
    from aaiclick.representations.schedules.registered_jobs import registered_job_here  # here, to keep start-up light

    entries: list[Any] = [registered_job_here(entry) for entry in wait_for(list_registered_jobs(enabled_only))]
    if as_json:
        show_json({"registered_jobs": entries})
        return
    show_table(COLUMNS, [[entry[column] for column in COLUMNS] for entry in entries])
    say({0: "no registered jobs", 1: "1 registered job"}.get(len(entries), f"{len(entries)} registered jobs"))


@app.command()
def get(name: Name, as_json: AsJson = False) -> None:
    """Show a registered job with its next times."""
    entry, times = wait_for(_get(name))
    _show(entry, times, as_json)


async def _get(name: str) -> tuple[RegisteredJob, list[datetime]]:
    from aaiclick.orchestration import registered_jobs as front  # here, to keep start-up light
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light

    async with orch_context():
        entry = await front.get_registered_job(name)
        if entry is None:
            hint = "See: aaiclick registered-job list"
            raise NotFound(what="registered job", field="name", value=name[:50], hint=hint)
        return entry, await front.next_runs(name)


def enable(name: Name, as_json: AsJson = False) -> None:
    """Let a registered job fire from now on; what it missed is not made up for."""
    _switch(name, True, as_json)


def disable(name: Name, as_json: AsJson = False) -> None:
    """Let a registered job fire no more; runs that have begun go on."""
    _switch(name, False, as_json)


def _switch(name: str, enabled: bool, as_json: bool) -> None:
    from aaiclick.orchestration import registered_jobs as front  # here, to keep start-up light
    from aaiclick.representations.schedules.registered_jobs import registered_job_here  # here, to keep start-up light

    entry = wait_for((front.enable_job if enabled else front.disable_job)(name))
    facts = registered_job_here(entry)
    if as_json:
        show_json(facts)
        return
    then = f"; it fires next at {facts['next_run_at']}" if facts["next_run_at"] else ""
    say(f"Registered job {entry.name!r} is {'enabled' if enabled else 'disabled'}{then}.")


# ---------------------------------------------------------------- what is typed


def read_kwargs(text: str | None) -> dict[str, Any] | None:
    """The object of `--kwargs`; None if nothing was given."""
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
    """What was read, as the annotations of the function promise it; that of the entry, unless one is given."""
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
    raise ValueError(f"{text} is no number of JSON")


# ---------------------------------------------------------------- what is shown


def _show(entry: RegisteredJob, times: list[datetime], as_json: bool) -> None:
    from aaiclick.representations.schedules.registered_jobs import registered_job_detail  # here, to keep start-up light

    facts: dict[str, Any] = {**registered_job_detail(entry, times)}
    if as_json:
        show_json(facts)
        return
    facts["default_kwargs"] = json.dumps(facts["default_kwargs"], ensure_ascii=False)
    show_facts(facts | {f"next {number}": time for number, time in enumerate(facts.pop("next_runs"), 1)})
