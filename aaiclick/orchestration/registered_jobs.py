"""The catalogue of registered jobs: entries with an entrypoint, defaults and a schedule. Also running one by name."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Unpack

from aaiclick.config import settings
from aaiclick.errors import InputError
from aaiclick.orchestration.checks import (
    check_defaults,
    check_kwargs,
    find_entrypoint,
    refuse_during_import,
    unexposed,
    with_its_executor,
)
from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.coordinator import registered_jobs as catalogue
from aaiclick.orchestration.coordinator.contract import Submitter
from aaiclick.orchestration.factories import digest, new_job, resolve_job_config, trace_submit
from aaiclick.orchestration.models import Fire, Job, PreservationMode, RegisteredJob, RunType, Task
from aaiclick.orchestration.models.node import collector, current_group
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.results.task_results import encode_returned
from aaiclick.orchestration.rules.cache_policies import CacheMode
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import carried, plain
from aaiclick.orchestration.rules.options import EntryOptions
from aaiclick.orchestration.rules.placement import needs_of
from aaiclick.orchestration.rules.resources import stored, with_resources
from aaiclick.orchestration.rules.schedules import cron
from aaiclick.orchestration.rules.schedules.fires import MISSED_MAX, MISSED_MAX_DEFAULT, MissedRuns, Overlap
from aaiclick.orchestration.rules.validation import NAME_LENGTH_MAX, check_name, check_paging, check_status, shorten
from aaiclick.orchestration.rules.values.encoding import encode_kwargs
from aaiclick.orchestration.rules.values.large_values import refuse_large
from aaiclick.orchestration.rules.values.shown_values import show_arguments
from aaiclick.orchestration.store.schedules import firing
from aaiclick.orchestration.store.schedules import registered_jobs as store
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.submitting.decorated_options import own_options, task_options
from aaiclick.orchestration.submitting.entrypoints import check_call, path_of
from aaiclick.orchestration.submitting.run_options import RunOptions
from aaiclick.orchestration.submitting.submitted_objects import submit_given

Entrypoint = str | Callable[..., Any]

OPTIONS = frozenset(EntryOptions.__annotations__)
"""The names of the options of an entry: all but its function, schedule, arguments and preservation mode."""

KEEP_LAST_MAX = 1_000_000

# ---------------------------------------------------------------- the catalogue


async def register_job(
    name: str,
    entrypoint: Entrypoint,
    schedule: str | None = None,
    default_kwargs: Mapping[str, object] | None = None,
    preservation_mode: PreservationMode | str | None = None,
    enabled: bool = True,
    **options: Unpack[EntryOptions],
) -> RegisteredJob:
    """Add an entry; raise an error if the name is taken, the schedule never fires, or the arguments do not fit.

    Options are `timezone` ("UTC"), `missed_runs` ("none", "latest", "all"), `missed_max`, `overlap` ("allow", "skip",
    "queue"), `time_kwarg` (the parameter that receives a run's scheduled time; two names, such as "start,end", receive
    the interval that ends with it), `keep_last` (how many ended runs are kept, whatever their age; all others are
    removed), `priority`, `timeout_s`, `fail_fast`, `placement`, `resources`; the last five are by default the `@job`'s.
    """
    refuse_during_import("Registering a job")
    facts = _facts(name, entrypoint, schedule, default_kwargs, preservation_mode, {**options})
    facts["enabled"] = _flag(enabled, "enabled")
    async with connected() as database:
        return await catalogue.add_registered_job(database, facts)


async def upsert_registered_job(
    name: str,
    entrypoint: Entrypoint,
    schedule: str | None = None,
    default_kwargs: Mapping[str, object] | None = None,
    preservation_mode: PreservationMode | str | None = None,
    enabled: bool | None = None,
    **options: Unpack[EntryOptions],
) -> RegisteredJob:
    """Add an entry, or replace all fields of an existing one; `enabled` stays as it is unless it is given."""
    refuse_during_import("Registering a job")
    facts = _facts(name, entrypoint, schedule, default_kwargs, preservation_mode, {**options})
    if enabled is not None:
        facts["enabled"] = _flag(enabled, "enabled")
    async with connected() as database:
        return await catalogue.upsert_registered_job(database, facts)


async def get_registered_job(name: str) -> RegisteredJob | None:
    """Return the entry of that name; None if there is none."""
    wanted = check_name(name, "Job name")
    async with connected() as database:
        return await database.read(lambda session: store.get_registered_job(session, wanted))


async def list_registered_jobs(enabled_only: bool = False) -> list[RegisteredJob]:
    """Return all entries, or the enabled ones, in the order of their names."""
    async with connected() as database:
        return await database.read(lambda session: store.list_registered_jobs(session, enabled_only))


async def enable_job(name: str) -> RegisteredJob:
    """Let an entry fire from now on. Times that passed while it was disabled are not made up for. Raise NotFound."""
    return await _set_enabled(name, True)


async def disable_job(name: str) -> RegisteredJob:
    """Let an entry fire no more. Jobs that exist go on; times that are queued behind them are skipped."""
    return await _set_enabled(name, False)


async def _set_enabled(name: str, enabled: bool) -> RegisteredJob:
    wanted = check_name(name, "Job name")
    async with connected() as database:
        return await database.transact(lambda session: store.set_enabled(session, wanted, enabled))


async def next_runs(name: str, count: int = cron.SHOWN) -> list[datetime]:
    """Return the next times of an entry, each with the offset its time zone then has; [] if it does not fire."""
    wanted, (limit, _) = check_name(name, "Job name"), check_paging(count)
    async with connected() as database:
        entry = await database.read(lambda session: store.get_registered_job(session, wanted))
        now = await database.read(Session.now)
    if entry is None:
        raise store.no_such_job(wanted)
    if entry.schedule is None or entry.next_run_at is None:
        return []
    return cron.next_fires(cron.parse_schedule(entry.schedule), cron.find_zone(entry.timezone), now, limit)


async def list_fires(
    name: str, limit: int | None = None, offset: int | None = None, *, before: datetime | None = None
) -> list[Fire]:
    """Return the outcomes of an entry's times, the latest first; `before` is the last time of the previous page."""
    wanted, (count, start) = check_name(name, "Job name"), check_paging(limit, offset)
    if before is not None and before.utcoffset() is None:
        raise InputError(field="before", value=shorten(before), rule="it must be a datetime with a time zone", hint="")

    async def work(session: Session) -> list[Fire]:
        entry = await store.get_registered_job(session, wanted)
        if entry is None:
            raise store.no_such_job(wanted)
        return await firing.list_fires(session, entry.id, count, start, before)

    async with connected() as database:
        return await database.read(work)


# ---------------------------------------------------------------- what an entry says, checked


def _facts(
    name: str,
    entrypoint: Entrypoint,
    schedule: str | None,
    default_kwargs: Mapping[str, object] | None,
    preservation_mode: PreservationMode | str | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Check what was given for an entry, and return its row without the columns that the store fills in."""
    if unknown := sorted(options.keys() - OPTIONS):
        hint = f"The options are {', '.join(sorted(OPTIONS))}."
        raise InputError(field="options", value=", ".join(unknown), rule="there are no such options", hint=hint)
    path = carried(path_of(entrypoint))  # in a job that came from outside, the defaults may come from there too
    kwargs = check_kwargs(default_kwargs, "default_kwargs")
    time_names = _time_names(options.get("time_kwarg"))
    found = _check_entrypoint(path, kwargs, time_names, complete=schedule is not None)
    path, own = with_its_executor(path, found), own_options(found)
    job = new_job(  # checks them all
        check_name(name, "Job name"),
        priority=_or(options.get("priority"), own.priority),
        timeout_s=_or(options.get("timeout_s"), own.timeout_s),
        fail_fast=_or(options.get("fail_fast"), own.fail_fast),
    )
    mode = preservation_mode or own.preservation_mode
    return {
        "name": job.name,
        "entrypoint": path,
        "schedule": None if schedule is None else cron.parse_schedule(schedule).text,
        "default_kwargs": unexposed(encode_kwargs(kwargs, bytes_max=settings().value_bytes_max), "default_kwargs"),
        "preservation_mode": None if mode is None else resolve_job_config(mode),
        "priority": job.priority,
        "timeout_s": _or(options.get("timeout_s"), own.timeout_s),
        "fail_fast": job.fail_fast,
        "time_kwarg": ",".join(time_names) or None,
        "keep_last": _kept(options.get("keep_last")),
        "placement": needs_of(_or(options.get("placement"), own.placement)) or None,
        "resources": stored(_or(options.get("resources"), own.resources)),
        **_timing(options),
    }


def _timing(options: dict[str, Any]) -> dict[str, Any]:
    zone = _or(options.get("timezone"), "UTC")
    cron.find_zone(zone)
    most = _or(options.get("missed_max"), MISSED_MAX_DEFAULT)
    if type(most) is not int or not 1 <= most <= MISSED_MAX:
        rule = f"it must be a whole number from 1 to {MISSED_MAX}"
        raise InputError(field="missed_max", value=shorten(most), rule=rule, hint="")
    return {
        "timezone": zone,
        "missed_runs": check_status(_or(options.get("missed_runs"), MissedRuns.LATEST), MissedRuns, "missed_runs"),
        "missed_max": most,
        "overlap": check_status(_or(options.get("overlap"), Overlap.ALLOW), Overlap, "overlap"),
    }


def _kept(most: object) -> int | None:
    if most is None:
        return None
    if type(most) is not int or not 1 <= most <= KEEP_LAST_MAX:
        hint = "Leave it out to keep runs by their age: AAICLICK_HISTORY_TTL."
        rule = f"it must be a whole number from 1 to {KEEP_LAST_MAX}"
        raise InputError(field="keep_last", value=shorten(most), rule=rule, hint=hint)
    return most


def _time_names(given: object) -> list[str]:
    """Return the names in `time_kwarg`, none, one or two, given as a text with a comma or as a list."""
    names = given.split(",") if isinstance(given, str) else given
    if names is None:
        return []
    if isinstance(names, list | tuple) and len(names) in (1, 2) and all(type(name) is str for name in names):
        names = [name.strip() for name in names]
        if (
            all(map(str.isidentifier, names))
            and len({*names}) == len(names)
            and len(",".join(names)) <= NAME_LENGTH_MAX
        ):
            return names
    hint = "Write one name such as day for the time of a run, or start,end for its interval."
    raise InputError(field="time_kwarg", value=shorten(given), rule="it must name one or two parameters", hint=hint)


def _check_entrypoint(path: str, kwargs: dict[str, object], time_names: list[str], *, complete: bool) -> object:
    for name in time_names:
        if name in kwargs:
            hint = "Remove it from the defaults."
            raise InputError(field="time_kwarg", value=name, rule="its value is set to the time of each run", hint=hint)
    found = find_entrypoint(path)
    if found is not None:
        check_defaults(found, {*kwargs, *time_names}, path, complete=complete)
    return found


def _flag(value: object, field: str) -> bool:
    if type(value) is not bool:
        raise InputError(field=field, value=shorten(value), rule="it must be True or False", hint="")
    return value


def _or(given: Any, otherwise: Any) -> Any:
    return otherwise if given is None else given


# ---------------------------------------------------------------- runs


async def run_job(
    name: str,
    entrypoint: Entrypoint | None = None,
    kwargs: Mapping[str, object] | None = None,
    preservation_mode: PreservationMode | str | None = None,
    *,
    key: str | None = None,
    priority: int | None = None,
    timeout_s: float | None = None,
    cache_mode: CacheMode | str | None = None,
) -> Job:
    """Run a job now. If an entry has that name, the job is linked to it, and `kwargs` override its defaults.

    Without such an entry, `entrypoint` is required. A `@job` runs as the entry task: its graph is stored when that task
    has completed, and its return value is the job's result.
    """
    options = RunOptions(preservation_mode, key, priority, timeout_s, cache_mode)
    return await _run(submit_given, name, entrypoint, kwargs, options)


async def run_job_from_json(
    name: str, entrypoint: str | None, kwargs: Mapping[str, object] | None, **options: Any
) -> Job:
    """Run a job like `run_job`, with arguments from JSON (REST, MCP); refuse those too large for the database."""
    return await _run(_submit_small, name, entrypoint, kwargs, RunOptions(**options))


ENTRYS_OWN = ("priority", "timeout_s", "fail_fast", "preservation_mode")
"""The options that an entry has of its own, in place of those of its `@job`."""

Submitted = Callable[[Submitter, Submission], Awaitable[Job]]


async def _run(
    submit: Submitted,
    name: str,
    entrypoint: Entrypoint | None,
    kwargs: Mapping[str, object] | None,
    options: RunOptions,
) -> Job:
    refuse_during_import("run_job(…)")
    wanted, given = check_name(name, "Job name"), check_kwargs(kwargs, "kwargs")
    async with connected() as database, coordinated() as coordinator:
        entry = await database.read(lambda session: store.get_registered_job(session, wanted))
        if entry is None and entrypoint is None:
            raise store.no_such_job(wanted)
        path, arguments = _path(entrypoint, entry), (entry.default_kwargs if entry is not None else {}) | given
        found = find_entrypoint(path)
        if found is not None:
            check_call(found, arguments, path)
        own = own_options(found)
        needs = needs_of(own.placement, own.resources)
        if entry is not None and entrypoint is None:
            own = own._replace(**{name: getattr(entry, name) for name in ENTRYS_OWN})
            needs = with_resources(entry.placement, entry.resources)
        elif entry is not None and entry.preservation_mode is not None:
            own = own._replace(preservation_mode=entry.preservation_mode)
        job = new_job(
            wanted,
            key=options.key,
            priority=_or(options.priority, own.priority),
            timeout_s=_or(options.timeout_s, own.timeout_s),
            fail_fast=own.fail_fast,
            preservation_mode=options.preservation_mode or own.preservation_mode,
            cache_mode=options.cache_mode or own.cache_mode or CacheMode.USE,
        )
        job.needs, submission = needs, _submission(job, with_its_executor(path, found), arguments, task_options(found))
        job.registered_job_id = None if entry is None else entry.id
        if job.key is not None:
            job.key_digest = digest([wanted, plain(path), submission.tasks[0].kwargs, options.asked(job)])
        began_ns = time.time_ns()  # for the span of the submission
        stored = await submit(coordinator, submission)
    if stored.id == job.id:
        trace_submit(stored, len(submission.tasks), began_ns)
        stored._tasks, stored._groups = list(submission.tasks), []
    return stored


def _path(entrypoint: Entrypoint | None, entry: RegisteredJob | None) -> str:
    if entrypoint is None:
        assert entry is not None
        return entry.entrypoint
    return path_of(entrypoint)


async def _submit_small(coordinator: Submitter, submission: Submission) -> Job:
    return await coordinator.submit(_small(submission))


def _small(submission: Submission) -> Submission:
    """Return the submission; raise an error if its arguments are too large to be stored in the database."""
    for task in submission.tasks:
        refuse_large(task.kwargs_json, "kwargs", settings().value_bytes_max)
    return submission


def scheduled_run(entry: RegisteredJob, fire_at: datetime, kwargs: Mapping[str, object] | None = None) -> Submission:
    """Return the submission of an entry's run for one time. The entrypoint was checked when it was registered."""
    job = new_job(
        entry.name,
        priority=entry.priority,
        timeout_s=entry.timeout_s,
        fail_fast=entry.fail_fast,
        preservation_mode=resolve_job_config(registered=entry),
    )
    job.run_type, job.registered_job_id, job.scheduled_at = RunType.SCHEDULED, entry.id, fire_at
    job.needs = with_resources(entry.placement, entry.resources)
    given = entry.default_kwargs | dict(kwargs or {})
    given |= zip(entry.time_names, _times(entry, fire_at), strict=True)
    return _small(_submission(job, entry.entrypoint, given))


def _times(entry: RegisteredJob, fire_at: datetime) -> list[datetime]:
    """Return the values of the time parameters: [the time], or [the schedule's time before it, the time]."""
    zone, names = cron.find_zone(entry.timezone), entry.time_names
    moments = [fire_at] if names else []
    if len(names) == 2:
        assert entry.schedule is not None, "it has no schedule, so it never fires"
        moments.insert(0, cron.previous_fire(cron.parse_schedule(entry.schedule), zone, fire_at))
    return [cron.with_offset(moment, zone) for moment in moments]


def _submission(job: Job, path: str, kwargs: dict[str, Any], options: Mapping[str, Any] | None = None) -> Submission:
    """Return a submission with one entry task, whose result is the job's; it joins no graph that the caller builds."""
    around, group = collector.set(None), current_group.set(None)
    try:
        task = Task(path, kwargs, priority=job.priority, references=False, chosen=True, **(options or {}))
    finally:
        collector.reset(around)
        current_group.reset(group)
    job.result_json, _ = encode_returned(task)
    job.arguments = show_arguments(kwargs)
    return Submission(job.id, tasks=[task], new_job=job)
