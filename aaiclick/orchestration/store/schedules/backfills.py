"""Backfills: run past times of a schedule, so many at a time; times that have run are skipped unless asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import func, insert, select, update

from aaiclick.errors import NotFound
from aaiclick.ids import new_id
from aaiclick.orchestration.models import Backfill, RegisteredJob
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside
from aaiclick.orchestration.rules.schedules.cron import find_zone, parse_schedule
from aaiclick.orchestration.rules.schedules.fires import (
    BackfillStatus,
    FireOutcome,
    end_of_backfill,
    fires_within,
    is_run,
)
from aaiclick.orchestration.store.reading.jobs import older_than
from aaiclick.orchestration.store.schedules.firing import (
    AT_ONCE,
    NEW,
    OPEN_JOB,
    Known,
    has_ended,
    known_times,
    note_fire,
    start_run,
)
from aaiclick.orchestration.store.schedules.registered_jobs import lock_registered_job
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import backfills, fires, jobs

MOMENT = timedelta(microseconds=1)

Build = Callable[[RegisteredJob, datetime, Mapping[str, Any]], Submission]
"""Builds the submission of an entry for one time; the mapping holds arguments that override its defaults."""


async def add_backfill(session: Session, facts: Mapping[str, Any]) -> Backfill:
    """Insert a backfill; the leader's control loop will start its runs."""
    row = dict(facts) | {"id": new_id(), "status": BackfillStatus.RUNNING, "created_at": await session.now()}
    row["next_at"] = row["start_at"]
    await session.run(insert(backfills).values(row))
    found = await get_backfill(session, row["id"])
    assert found is not None
    return found


async def get_backfill(session: Session, backfill_id: int) -> Backfill | None:
    row = await session.first(select(backfills).where(backfills.c.id == backfill_id))
    if row is None:
        return None
    return Backfill.from_row(row, (await count_runs(session, [backfill_id])).get(backfill_id))


async def list_backfills(
    session: Session, entry_id: int, limit: int, offset: int, before: int | None = None
) -> list[Backfill]:
    """Return the backfills of an entry, newest first; `before` is the id of the last one on the previous page."""
    created, key = backfills.c.created_at, backfills.c.id
    mine = select(backfills).where(backfills.c.registered_job_id == entry_id).order_by(created.desc(), key.desc())
    if before is not None:
        mine = mine.where(*await older_than(session, backfills, created, before))
    rows = await session.rows(mine.limit(limit).offset(offset))
    runs = await count_runs(session, [row.id for row in rows])
    return [Backfill.from_row(row, runs.get(row.id)) for row in rows]


async def count_runs(session: Session, ids: Collection[int]) -> dict[int, dict[str, int]]:
    """Return, for each of these backfills, the number of its jobs by status."""
    counts: dict[int, dict[str, int]] = {}
    if not ids:
        return counts
    facts = (jobs.c.backfill_id, jobs.c.status)
    chosen = select(*facts, func.count().label("number")).where(session.any_of(jobs.c.backfill_id, sorted(ids)))
    for row in await session.rows(chosen.group_by(*facts)):
        counts.setdefault(row.backfill_id, {})[row.status] = row.number
    return counts


async def cancel_backfill(session: Session, backfill_id: int) -> bool:
    """Start no more runs of a backfill; return False if it has ended already. Raise NotFound if there is none.

    Runs that have started go on.
    """
    if await get_backfill(session, backfill_id) is None:
        raise NotFound(what="backfill", field="id", value=backfill_id, hint="")
    return await _end(session, backfill_id, BackfillStatus.CANCELLED)


async def _end(session: Session, backfill_id: int, status: BackfillStatus) -> bool:
    running = (backfills.c.id == backfill_id, backfills.c.status == BackfillStatus.RUNNING)
    ends = {"status": status, "completed_at": await session.now()}
    return bool(await session.run(update(backfills).where(*running).values(ends)))


async def open_backfills(session: Session, after: int | None = None) -> list[tuple[int, int]]:
    """Return (backfill, entry) ids of running backfills with an id above `after`, at most `AT_ONCE`."""
    chosen = select(backfills.c.id, backfills.c.registered_job_id)
    chosen = chosen.where(backfills.c.status == BackfillStatus.RUNNING, backfills.c.id > (after or 0))
    rows = await session.rows(chosen.order_by(backfills.c.id).limit(AT_ONCE))
    return [(row.id, row.registered_job_id) for row in rows]


async def advance(session: Session, backfill_id: int, entry_id: int, build: Build) -> bool:
    """Start as many runs as `parallel_max` allows; return True if another call can go on at once.

    Locks the entry and the backfill. Ends the backfill when no time is left and none of its runs is open.
    """
    entry = await lock_registered_job(session, entry_id=entry_id)
    row = await session.first(select(backfills).where(backfills.c.id == backfill_id).with_for_update())
    if entry is None or row is None or row.status != BackfillStatus.RUNNING:
        return False
    backfill = Backfill.from_row(row)
    runs = (await count_runs(session, [backfill_id])).get(backfill_id, {})
    running = sum(number for status, number in runs.items() if status in OPEN_JOB)
    room = backfill.parallel_max - running
    if room <= 0:
        return False
    schedule, zone = parse_schedule(backfill.schedule), find_zone(backfill.timezone)
    times = list(islice(fires_within(schedule, zone, backfill.next_at, backfill.end_at), AT_ONCE))
    if not times:
        if not running:
            await _end(session, backfill_id, end_of_backfill(runs))
        return False
    known = await known_times(session, entry_id, times)
    next_at, left, started = backfill.end_at if len(times) < AT_ONCE else None, 0, 0
    for fire_at in times:
        if started == room:
            next_at = fire_at
            break
        before = known.get(fire_at, NEW)
        if await _runs(session, backfill, before):
            await _run(session, entry, backfill, fire_at, build, again=fire_at in known)
            started += 1
        else:
            left += 1
    mine = update(backfills).where(backfills.c.id == backfill_id)
    done = {"next_at": next_at or times[-1] + MOMENT, "left_alone": backfill.left_alone + left}
    await session.run(mine.values(done))
    return next_at is None or not running + started


async def _runs(session: Session, backfill: Backfill, before: Known) -> bool:
    """Return whether the backfill runs this time.

    The job of the previous run is locked, so that it is not cleared, and does not run again, beside the new one.
    """
    wanted = is_run(before.state, force=backfill.force, failed_only=backfill.failed_only)
    return wanted and await has_ended(session, before.job_id)


async def _run(
    session: Session, entry: RegisteredJob, backfill: Backfill, fire_at: datetime, build: Build, *, again: bool
) -> None:
    as_asked = replace(entry, schedule=backfill.schedule, timezone=backfill.timezone)
    with arguments_from_outside(backfill.from_outside):
        submission = build(as_asked, fire_at, backfill.kwargs)
    assert submission.new_job is not None
    submission.new_job.backfill_id = backfill.id
    job_id = await start_run(session, submission)
    if again:
        this = (fires.c.registered_job_id == entry.id, fires.c.fire_at == fire_at)
        facts = {"outcome": FireOutcome.RUN, "job_id": job_id, "backfill_id": backfill.id}
        await session.run(update(fires).where(*this).values(facts))
    else:
        now = await session.now()
        await note_fire(session, entry.id, fire_at, FireOutcome.RUN, job_id, now, backfill_id=backfill.id)
