"""Backfills: run the past times of a schedule, so many at once. Times that have run already are left alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import islice

from aaiclick.config import settings
from aaiclick.errors import Conflict, InputError
from aaiclick.orchestration.checks import check_kwargs, find_entrypoint, unexposed
from aaiclick.orchestration.context import connected
from aaiclick.orchestration.models import Backfill, RegisteredJob
from aaiclick.orchestration.params import check_call
from aaiclick.orchestration.rules.cron import find_zone, parse_schedule, with_offset
from aaiclick.orchestration.rules.names import check_id, check_name, check_paging, shorten
from aaiclick.orchestration.rules.schedules import BACKFILL_MAX, PARALLEL_MAX, check_range, fires_within
from aaiclick.orchestration.rules.values import encode_kwargs
from aaiclick.orchestration.store import backfills as store
from aaiclick.orchestration.store.registered_jobs import get_registered_job, no_such_job
from aaiclick.orchestration.store.session import Session


async def plan_backfill(name: str, start: datetime, end: datetime) -> list[datetime]:
    """The times that a backfill of this range would cover: from the start on, and without the end."""
    async with connected() as coordinator:
        _, times = await coordinator.database.read(lambda session: _plan(session, name, start, end))
    return times


async def backfill_job(
    name: str, start: datetime, end: datetime, *, parallel: int = 1, kwargs: Mapping[str, object] | None = None
) -> Backfill:
    """Run an entry for each of its past times in a range, at most so many at once; whoever leads starts the runs.

    A time that has run is not run again; one that was skipped, or missed, is.
    """
    if type(parallel) is not int or not 1 <= parallel <= PARALLEL_MAX:
        rule = f"a whole number from 1 to {PARALLEL_MAX}"
        raise InputError(field="parallel", value=shorten(parallel), rule=rule, hint="")
    given = check_kwargs(kwargs, "kwargs")

    async def work(session: Session) -> Backfill:
        entry, times = await _plan(session, name, start, end)
        if not times:
            raise InputError(field="start", value=start.isoformat(), rule="no time of the schedule is in it", hint="")
        facts = {
            "registered_job_id": entry.id,
            "schedule": entry.schedule,
            "timezone": entry.timezone,
            "kwargs": unexposed(encode_kwargs(given, bytes_max=settings().value_bytes_max), "kwargs"),
            "start_at": start,
            "end_at": end,
            "parallel_max": parallel,
        }
        _check_call(entry, given)
        return await store.add_backfill(session, facts)

    async with connected() as coordinator:
        return await coordinator.database.transact(work)


async def _plan(session: Session, name: str, start: datetime, end: datetime) -> tuple[RegisteredJob, list[datetime]]:
    wanted = check_name(name, "Job name")
    entry = await get_registered_job(session, wanted)
    if entry is None:
        raise no_such_job(wanted)
    if entry.schedule is None:
        cause = "it has no schedule"
        raise Conflict(what=f"Registered job {shorten(wanted)}", verb="backfilled", cause=cause, hint="Give it one.")
    check_range(start, end, await session.now())
    zone = find_zone(entry.timezone)
    times = list(islice(fires_within(parse_schedule(entry.schedule), zone, start, end), BACKFILL_MAX + 1))
    if len(times) > BACKFILL_MAX:
        rule = f"the range has more than {BACKFILL_MAX} times"
        raise InputError(field="end", value=end.isoformat(), rule=rule, hint="Take a shorter one.")
    return entry, [with_offset(time, zone) for time in times]


def _check_call(entry: RegisteredJob, given: Mapping[str, object]) -> None:
    found = find_entrypoint(entry.entrypoint)
    if found is not None:
        names = {*entry.default_kwargs, *given} | ({entry.time_kwarg} if entry.time_kwarg else set())
        check_call(found, names, entry.entrypoint)


async def get_backfill(backfill_id: int) -> Backfill | None:
    """A backfill as it is now; None if there is none."""
    wanted = check_id(backfill_id, "backfill id")
    async with connected() as coordinator:
        return await coordinator.database.read(lambda session: store.get_backfill(session, wanted))


async def list_backfills(name: str, limit: int | None = None, offset: int | None = None) -> list[Backfill]:
    """The backfills of an entry, newest first."""
    wanted, (count, first) = check_name(name, "Job name"), check_paging(limit, offset)

    async def work(session: Session) -> list[Backfill]:
        entry = await get_registered_job(session, wanted)
        if entry is None:
            raise no_such_job(wanted)
        return await store.list_backfills(session, entry.id, count, first)

    async with connected() as coordinator:
        return await coordinator.database.read(work)


async def cancel_backfill(backfill_id: int) -> bool:
    """Start no more runs of a backfill; those that began go on. False if it had ended."""
    wanted = check_id(backfill_id, "backfill id")
    async with connected() as coordinator:
        return await coordinator.database.transact(lambda session: store.cancel_backfill(session, wanted))
