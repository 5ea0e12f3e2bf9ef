"""Backfills: running the past times of a schedule, a limited number at once.

Times that have run are left out unless the caller asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from itertools import islice
from typing import NamedTuple

from aaiclick.config import settings
from aaiclick.errors import Conflict, InputError
from aaiclick.orchestration.checks import check_kwargs, find_entrypoint, unexposed
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models import Backfill, RegisteredJob
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import are_from_outside
from aaiclick.orchestration.rules.schedules.cron import find_zone, parse_schedule, with_offset
from aaiclick.orchestration.rules.schedules.fires import (
    BACKFILL_MAX,
    PARALLEL_MAX,
    TimeState,
    check_range,
    fires_within,
    is_run,
)
from aaiclick.orchestration.rules.validation import check_id, check_name, check_paging, shorten
from aaiclick.orchestration.rules.values.encoding import encode_kwargs
from aaiclick.orchestration.store.schedules import backfills as store
from aaiclick.orchestration.store.schedules.firing import NEW, known_times
from aaiclick.orchestration.store.schedules.registered_jobs import get_registered_job, no_such_job
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.submitting.entrypoints import check_call


class PlannedTime(NamedTuple):
    """A time of a schedule in the range of a backfill."""

    fire_at: datetime
    state: TimeState
    """What became of the time so far: not run, queued, skipped, or the state of its latest job."""
    runs: bool
    """Whether the backfill would run it."""
    job_id: int | None
    """The id of its latest job; None if there is none."""


async def plan_backfill(
    name: str, start: date, end: date, *, force: bool = False, failed: bool = False
) -> list[PlannedTime]:
    """Return the times that a backfill of this range covers, and for each whether it would run; nothing is stored.

    The range includes `start` and excludes `end`.
    """
    how = _how(force, failed)

    async def work(session: Session) -> list[PlannedTime]:
        entry, _, times = await _plan(session, name, start, end)
        known = await known_times(session, entry.id, times)
        zone = find_zone(entry.timezone)
        return [
            PlannedTime(with_offset(time, zone), found.state, is_run(found.state, **how), found.job_id)
            for time, found in ((time, known.get(time, NEW)) for time in times)
        ]

    async with connected() as database:
        return await database.read(work)


async def backfill_job(
    name: str,
    start: date,
    end: date,
    *,
    parallel: int = 1,
    kwargs: Mapping[str, object] | None = None,
    force: bool = False,
    failed: bool = False,
) -> Backfill:
    """Run a registered job for each of its past times in a range, at most `parallel` at once.

    This call stores the backfill; the leader of the control loop starts the jobs. A `date` means its midnight in the
    entry's time zone. A time that was skipped or missed runs. A time that has run is run again only with `force`; with
    `failed`, only times whose last run failed are run. A time whose job is still running is left alone.
    """
    how = _how(force, failed)
    if type(parallel) is not int or not 1 <= parallel <= PARALLEL_MAX:
        rule = f"it must be a whole number from 1 to {PARALLEL_MAX}"
        raise InputError(field="parallel", value=shorten(parallel), rule=rule, hint="")
    given = check_kwargs(kwargs, "kwargs")

    async def work(session: Session) -> Backfill:
        entry, (begins, ends), times = await _plan(session, name, start, end)
        if not times:
            raise InputError(
                field="start", value=begins.isoformat(), rule="the range contains no time of the schedule", hint=""
            )
        facts = {
            "registered_job_id": entry.id,
            "schedule": entry.schedule,
            "timezone": entry.timezone,
            "kwargs": unexposed(encode_kwargs(given, bytes_max=settings().value_bytes_max), "kwargs"),
            "start_at": begins,
            "end_at": ends,
            "parallel_max": parallel,
            "total": len(times),
            "from_outside": are_from_outside(),
            **how,
        }
        _check_call(entry, given)
        return await store.add_backfill(session, facts)

    async with connected() as database:
        return await database.transact(work)


def _how(force: object, failed: object) -> dict[str, bool]:
    for field, value in (("force", force), ("failed", failed)):
        if type(value) is not bool:
            raise InputError(field=field, value=shorten(value), rule="it must be True or False", hint="")
    if force and failed:
        hint = "force runs all times again; failed runs only those that failed."
        raise InputError(field="force", value=True, rule="it cannot be combined with failed", hint=hint)
    return {"force": bool(force), "failed_only": bool(failed)}


async def _plan(
    session: Session, name: str, start: date, end: date
) -> tuple[RegisteredJob, tuple[datetime, datetime], list[datetime]]:
    wanted = check_name(name, "Job name")
    entry = await get_registered_job(session, wanted)
    if entry is None:
        raise no_such_job(wanted)
    if entry.schedule is None:
        cause = "it has no schedule"
        raise Conflict(what=f"Registered job {shorten(wanted)}", verb="backfilled", cause=cause, hint="Give it one.")
    zone = find_zone(entry.timezone)
    begins, ends = check_range(start, end, zone, await session.now())
    times = list(islice(fires_within(parse_schedule(entry.schedule), zone, begins, ends), BACKFILL_MAX + 1))
    if len(times) > BACKFILL_MAX:
        rule = f"the range has more than {BACKFILL_MAX} times"
        raise InputError(field="end", value=ends.isoformat(), rule=rule, hint="Use a shorter range.")
    return entry, (begins, ends), times


def _check_call(entry: RegisteredJob, given: Mapping[str, object]) -> None:
    """Check the arguments against the function's signature; the time parameters are always given."""
    found = find_entrypoint(entry.entrypoint)
    if found is not None:
        check_call(found, {*entry.default_kwargs, *given, *entry.time_names}, entry.entrypoint)


async def get_backfill(backfill_id: int) -> Backfill | None:
    """Return a backfill with the current counts; None if there is none with this id."""
    wanted = check_id(backfill_id, "backfill id")
    async with connected() as database:
        return await database.read(lambda session: store.get_backfill(session, wanted))


async def list_backfills(
    name: str, limit: int | None = None, offset: int | None = None, *, before: int | None = None
) -> list[Backfill]:
    """Return the backfills of an entry, newest first; `before` is the id of the last one of the previous page."""
    wanted, (count, first) = check_name(name, "Job name"), check_paging(limit, offset)
    below = None if before is None else check_id(before, "before")

    async def work(session: Session) -> list[Backfill]:
        entry = await get_registered_job(session, wanted)
        if entry is None:
            raise no_such_job(wanted)
        return await store.list_backfills(session, entry.id, count, first, below)

    async with connected() as database:
        return await database.read(work)


async def cancel_backfill(backfill_id: int) -> bool:
    """Start no more jobs of a backfill; those that were started go on. Return False if it had ended."""
    wanted = check_id(backfill_id, "backfill id")
    async with connected() as database:
        return await database.transact(lambda session: store.cancel_backfill(session, wanted))
