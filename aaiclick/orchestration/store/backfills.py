"""Backfills: past times of a schedule are run, so many at once; times that have run are left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import func, insert, select, update

from aaiclick.errors import NotFound
from aaiclick.ids import new_id
from aaiclick.orchestration.models import Backfill, JobStatus, RegisteredJob
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.cron import find_zone, parse_schedule
from aaiclick.orchestration.rules.schedules import FireOutcome, fires_within
from aaiclick.orchestration.store.registered_jobs import lock_registered_job
from aaiclick.orchestration.store.schedules import AT_ONCE, known_fires, note_fire, open_runs, start_run
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import backfills, fires

MOMENT = timedelta(microseconds=1)

Build = Callable[[RegisteredJob, datetime, Mapping[str, Any]], Submission]
"""Makes the run of an entry for one of its times, with these arguments over its defaults."""


async def add_backfill(session: Session, facts: Mapping[str, Any]) -> Backfill:
    """Let a range of times be run by whoever leads."""
    row = dict(facts) | {"id": new_id(), "status": JobStatus.RUNNING, "created_at": await session.now()}
    row["next_at"] = row["start_at"]
    await session.run(insert(backfills).values(row))
    found = await get_backfill(session, row["id"])
    assert found is not None
    return found


async def get_backfill(session: Session, backfill_id: int) -> Backfill | None:
    row = await session.first(select(backfills).where(backfills.c.id == backfill_id))
    return None if row is None else Backfill.from_row(row)


async def list_backfills(session: Session, entry_id: int, limit: int, offset: int) -> list[Backfill]:
    """The backfills of an entry, newest first."""
    mine = select(backfills).where(backfills.c.registered_job_id == entry_id).order_by(backfills.c.id.desc())
    return [Backfill.from_row(row) for row in await session.rows(mine.limit(limit).offset(offset))]


async def cancel_backfill(session: Session, backfill_id: int) -> bool:
    """Start no more runs of it; False if it ended before."""
    if await get_backfill(session, backfill_id) is None:
        raise NotFound(what="backfill", field="id", value=backfill_id, hint="")
    return await _end(session, backfill_id, JobStatus.CANCELLED)


async def _end(session: Session, backfill_id: int, status: JobStatus) -> bool:
    running = (backfills.c.id == backfill_id, backfills.c.status == JobStatus.RUNNING)
    ends = {"status": status, "completed_at": await session.now()}
    return bool(await session.run(update(backfills).where(*running).values(ends)))


async def open_backfills(session: Session, after: int | None = None) -> list[tuple[int, int]]:
    """Backfills of which something is left, beyond this one, with their entries."""
    chosen = select(backfills.c.id, backfills.c.registered_job_id)
    chosen = chosen.where(backfills.c.status == JobStatus.RUNNING, backfills.c.id > (after or 0))
    rows = await session.rows(chosen.order_by(backfills.c.id).limit(AT_ONCE))
    return [(row.id, row.registered_job_id) for row in rows]


async def advance(session: Session, backfill_id: int, entry_id: int, build: Build) -> bool:
    """Start as many runs as there is room for; True if more can be done at once.

    It has completed when all its times are done with and none of its runs is left.
    """
    entry = await lock_registered_job(session, entry_id=entry_id)
    row = await session.first(select(backfills).where(backfills.c.id == backfill_id).with_for_update())
    if entry is None or row is None or row.status != JobStatus.RUNNING:
        return False
    backfill = Backfill.from_row(row)
    running = await _count_running(session, backfill)
    room = backfill.parallel_max - running
    if room <= 0:
        return False
    schedule, zone = parse_schedule(backfill.schedule), find_zone(backfill.timezone)
    times = list(islice(fires_within(schedule, zone, backfill.next_at, backfill.end_at), AT_ONCE))
    if not times:
        if not running:
            await _end(session, backfill_id, JobStatus.COMPLETED)
        return False
    known = await known_fires(session, entry_id, times)
    next_at = backfill.end_at if len(times) < AT_ONCE else None
    for fire_at in times:
        if room == 0:
            next_at = fire_at
            break
        if known.get(fire_at) in (None, FireOutcome.SKIPPED):
            await _run(session, entry, backfill, fire_at, build, again=fire_at in known)
            room -= 1
    mine = update(backfills).where(backfills.c.id == backfill_id)
    await session.run(mine.values(next_at=next_at or times[-1] + MOMENT))
    return next_at is None


async def _run(
    session: Session, entry: RegisteredJob, backfill: Backfill, fire_at: datetime, build: Build, *, again: bool
) -> None:
    job_id = await start_run(session, build(entry, fire_at, backfill.kwargs))
    if again:
        this = (fires.c.registered_job_id == entry.id, fires.c.fire_at == fire_at)
        facts = {"outcome": FireOutcome.RUN, "job_id": job_id, "backfill_id": backfill.id}
        await session.run(update(fires).where(*this).values(facts))
    else:
        now = await session.now()
        await note_fire(session, entry.id, fire_at, FireOutcome.RUN, job_id, now, backfill_id=backfill.id)


async def _count_running(session: Session, backfill: Backfill) -> int:
    left = await open_runs(session, backfill.registered_job_id)
    if not left:
        return 0
    mine = (fires.c.backfill_id == backfill.id, session.any_of(fires.c.job_id, left))
    return int(await session.scalar(select(func.count()).select_from(fires).where(*mine)))
