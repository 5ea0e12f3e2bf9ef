"""Firing of schedules: due times become jobs, in one transaction under the entry's lock, so each time runs once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, ScalarSelect, exists, func, insert, literal, or_, select, update

from aaiclick.orchestration.models import Fire, JobStatus, RegisteredJob
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.schedules.cron import find_zone, parse_schedule
from aaiclick.orchestration.rules.schedules.fires import BackfillStatus, FireOutcome, Overlap, TimeState, due_fires
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.store.claims.lanes import place_run
from aaiclick.orchestration.store.graphs.inserts import add_job
from aaiclick.orchestration.store.schedules.registered_jobs import lock_registered_job
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import backfills, fires, jobs, registered_jobs

AT_ONCE = 100
"""Rows in one page of entries, of backfills, or of the times of a backfill."""

QUEUED_MAX = 1_000
"""How many times of one entry may wait for an earlier run; later ones are skipped."""

Build = Callable[[RegisteredJob, datetime], Submission]
"""Builds the submission of an entry for one time."""

OPEN_JOB = sorted(set(JobStatus) - ENDED_JOB)


class Fired(NamedTuple):
    """How many due times of one entry were run, queued, skipped (for overlap) or missed."""

    name: str
    run: int
    queued: int
    skipped: int
    missed: int


def question() -> ColumnElement[bool]:
    """Return the condition that a time is queued or a backfill is running; for the leader's poll (`pending_work`)."""
    return or_(
        exists(select(literal(1)).select_from(fires).where(fires.c.outcome == FireOutcome.QUEUED)),
        exists(select(literal(1)).select_from(backfills).where(backfills.c.status == BackfillStatus.RUNNING)),
    )


def next_time() -> ScalarSelect[datetime | None]:
    """Return a subquery for the earliest `next_run_at`; NULL if no entry fires.

    The caller compares it with the time. In SQL, the current time is evaluated for each row, and none of the three
    databases uses an index for such a comparison.
    """
    return select(func.min(registered_jobs.c.next_run_at)).scalar_subquery()


async def due_entries(session: Session, after: tuple[datetime, int] | None = None) -> list[tuple[datetime, int]]:
    """Return (next_run_at, id) of due entries, earliest first; `after` is the last one of the previous page."""
    moment, entry = registered_jobs.c.next_run_at, registered_jobs.c.id
    due = select(moment, entry).where(moment <= await session.now())
    if after is not None:
        due = due.where(moment >= after[0], or_(moment > after[0], entry > after[1]))
    rows = await session.rows(due.order_by(moment, entry).limit(AT_ONCE))
    return [(row.next_run_at, row.id) for row in rows]


async def fire_entry(session: Session, entry_id: int, build: Build) -> Fired | None:
    """Run, queue or skip the due times of one entry, and set its next one.

    Return None if nothing is due any more: another process fired it, or it was disabled or lost its schedule.
    """
    entry = await lock_registered_job(session, entry_id=entry_id)
    now = await session.now()
    if entry is None or not entry.enabled or entry.schedule is None:
        return None
    if entry.next_run_at is None or entry.next_run_at > now:
        return None
    schedule, zone = parse_schedule(entry.schedule), find_zone(entry.timezone)
    due = due_fires(schedule, zone, entry.next_run_at, now, entry.missed_runs, entry.missed_max)
    known = await known_fires(session, entry.id, due.fires)
    outcomes = [await _fire(session, entry, fire_at, build, now) for fire_at in due.fires if fire_at not in known]
    mine = update(registered_jobs).where(registered_jobs.c.id == entry.id)
    await session.run(mine.values(next_run_at=due.next_run_at))
    return Fired(
        entry.name,
        run=outcomes.count(FireOutcome.RUN),
        queued=outcomes.count(FireOutcome.QUEUED),
        skipped=outcomes.count(FireOutcome.SKIPPED),
        missed=due.missed,
    )


async def _fire(session: Session, entry: RegisteredJob, fire_at: datetime, build: Build, now: datetime) -> FireOutcome:
    outcome = await _outcome(session, entry)
    job_id = None
    if outcome is FireOutcome.RUN:
        job_id = await start_run(session, build(entry, fire_at))
    await note_fire(session, entry.id, fire_at, outcome, job_id, now)
    return outcome


async def _outcome(session: Session, entry: RegisteredJob) -> FireOutcome:
    if entry.overlap is Overlap.ALLOW:
        return FireOutcome.RUN
    waiting = await _count_queued(session, entry.id) if entry.overlap is Overlap.QUEUE else 0
    if not waiting and not await open_runs(session, entry.id, limit=1):
        return FireOutcome.RUN
    return FireOutcome.QUEUED if entry.overlap is Overlap.QUEUE and waiting < QUEUED_MAX else FireOutcome.SKIPPED


async def _count_queued(session: Session, entry_id: int) -> int:
    waiting = (fires.c.outcome == FireOutcome.QUEUED, fires.c.registered_job_id == entry_id)
    return int(await session.scalar(select(func.count()).select_from(fires).where(*waiting)))


# ---------------------------------------------------------------- steps shared with backfills


async def known_fires(session: Session, entry_id: int, times: Collection[datetime]) -> dict[datetime, FireOutcome]:
    """Return the outcome of each time of an entry that has a row in `fires`, between the first and last of `times`."""
    if not times:
        return {}
    within = (fires.c.registered_job_id == entry_id, fires.c.fire_at.between(min(times), max(times)))
    rows = await session.rows(select(fires.c.fire_at, fires.c.outcome).where(*within))
    return {row.fire_at: FireOutcome(row.outcome) for row in rows}


class Known(NamedTuple):
    """The state of a time, and the job of its latest run; None if it never ran."""

    state: TimeState
    job_id: int | None = None


NEW = Known(TimeState.NEW)


async def known_times(session: Session, entry_id: int, times: Collection[datetime]) -> dict[datetime, Known]:
    """Return the state and latest job of each time that has a row in `fires`, between the first and last of `times`."""
    if not times:
        return {}
    within = (fires.c.registered_job_id == entry_id, fires.c.fire_at.between(min(times), max(times)))
    both = fires.outerjoin(jobs, jobs.c.id == fires.c.job_id)
    chosen = select(fires.c.fire_at, fires.c.outcome, fires.c.job_id, jobs.c.status).select_from(both)
    return {
        row.fire_at: Known(_state(row.outcome, row.status), row.job_id)
        for row in await session.rows(chosen.where(*within))
    }


def _state(outcome: str, status: str | None) -> TimeState:
    if outcome != FireOutcome.RUN:
        return TimeState(outcome)
    if status is None:
        return TimeState.GONE
    return TimeState.RUNNING if status in OPEN_JOB else TimeState(status)


async def has_ended(session: Session, job_id: int | None) -> bool:
    """Lock a job's row and return whether the job has ended or is not kept any more; True without a job.

    The lock makes a clear of its tasks wait until this transaction ends.
    """
    if job_id is None:
        return True
    locked = select(jobs.c.status).where(jobs.c.id == job_id).with_for_update(key_share=True)
    return await session.scalar(locked) not in OPEN_JOB


async def note_fire(
    session: Session,
    entry_id: int,
    fire_at: datetime,
    outcome: FireOutcome,
    job_id: int | None,
    now: datetime,
    backfill_id: int | None = None,
) -> None:
    """Insert the outcome of a time; the key of `fires` refuses a second row for it."""
    row = {
        "registered_job_id": entry_id,
        "fire_at": fire_at,
        "outcome": outcome,
        "job_id": job_id,
        "backfill_id": backfill_id,
        "created_at": now,
    }
    await session.run(insert(fires).values(row))


async def start_run(session: Session, submission: Submission) -> int:
    """Store the job of a time and its graph; return the job's id."""
    await place_run(session, submission)
    await add_job(session, submission)
    return submission.job_id


async def open_runs(session: Session, entry_id: int, limit: int | None = None) -> list[int]:
    """Return the jobs of an entry that have not ended, at most `limit`: scheduled, started by hand or by a backfill."""
    mine = (jobs.c.registered_job_id == entry_id, jobs.c.status.in_(OPEN_JOB))
    return [row.id for row in await session.rows(select(jobs.c.id).where(*mine).limit(limit))]


# ---------------------------------------------------------------- queued times


async def queued_entries(session: Session, after: int | None = None) -> list[int]:
    """Return the ids above `after` of entries that have queued times, at most `AT_ONCE`."""
    entry = fires.c.registered_job_id
    waiting = select(entry).where(fires.c.outcome == FireOutcome.QUEUED, entry > (after or 0))
    rows = await session.rows(waiting.distinct().order_by(entry).limit(AT_ONCE))
    return [row.registered_job_id for row in rows]


async def run_queued(session: Session, entry_id: int, build: Build) -> bool:
    """Run the oldest queued time of an entry; return whether it did.

    It does not while a run of the entry is open, unless the entry allows overlap.
    """
    entry = await lock_registered_job(session, entry_id=entry_id)
    if entry is None:
        return False
    if entry.overlap is not Overlap.ALLOW and await open_runs(session, entry_id, limit=1):
        return False
    waiting = (fires.c.registered_job_id == entry_id, fires.c.outcome == FireOutcome.QUEUED)
    oldest = await session.first(select(fires.c.fire_at).where(*waiting).order_by(fires.c.fire_at).limit(1))
    if oldest is None:
        return False
    job_id = await start_run(session, build(entry, oldest.fire_at))
    this = (fires.c.registered_job_id == entry_id, fires.c.fire_at == oldest.fire_at)
    await session.run(update(fires).where(*this).values(outcome=FireOutcome.RUN, job_id=job_id))
    return True


# ---------------------------------------------------------------- queries


async def list_fires(
    session: Session, entry_id: int, limit: int, offset: int, before: datetime | None = None
) -> list[Fire]:
    """Return the times of an entry with their outcomes, latest first; `before` is the last of the previous page."""
    mine = select(fires).where(fires.c.registered_job_id == entry_id).order_by(fires.c.fire_at.desc())
    if before is not None:
        mine = mine.where(fires.c.fire_at < before)
    rows: Sequence[Any] = await session.rows(mine.limit(limit).offset(offset))
    return [Fire.from_row(row) for row in rows]
