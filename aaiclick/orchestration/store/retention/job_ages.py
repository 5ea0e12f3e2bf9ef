"""Jobs that were kept long enough: which they are, and how they go.

A job goes in one short transaction: its row, with its key, and the lock of its graph. From then on nobody finds it, and
nobody can clear it. What else there is of it goes afterwards, in steps; see `job_remains`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, CompoundSelect, delete, exists, func, select, union

from aaiclick.orchestration.rules.schedules import BackfillStatus
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.object_tables.references import free_pins
from aaiclick.orchestration.store.reading.metrics import HORIZON
from aaiclick.orchestration.store.retention.table_ages import mark_tables_of
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import (
    backfills,
    events,
    gone_jobs,
    graph_locks,
    jobs,
    metrics,
    registered_jobs,
    ripples,
    table_context_refs,
)

AT_ONCE = 200
"""Jobs that one transaction removes."""

_ENDED = jobs.c.status.in_(sorted(ENDED_JOB))


async def mark_tables(session: Session, ttl_s: float | None) -> int:
    """Mark tables of jobs whose time is over, some of them: the jobs go when none is left."""
    due = (await _due(session, ttl_s)).subquery()
    return await mark_tables_of(session, jobs.c.id.in_(select(due.c.id)))


async def remove_jobs(session: Session, ttl_s: float | None) -> int:
    """Let some jobs be gone whose time is over; gives how many.

    Whoever clears one, or adds to it, has the lock of its graph: such a job is left alone. Looking again under the lock
    finds those that run again by now.
    """
    found = await due_jobs(session, ttl_s, AT_ONCE)
    if not found:
        return 0
    mine = select(graph_locks.c.job_id).where(session.any_of(graph_locks.c.job_id, found))
    locked = [row.job_id for row in await session.rows(mine.with_for_update(skip_locked=True))]
    rows = select(jobs.c.id).where(session.any_of(jobs.c.id, sorted(locked)))
    held = [row.id for row in await session.rows(rows.with_for_update(skip_locked=True))] if locked else []
    gone = await due_jobs(session, ttl_s, AT_ONCE, among=sorted(held)) if held else []
    if gone:
        await free_pins(session, gone)  # a pin of a job's own id is its result's
        await insert_missing(session, gone_jobs, [{"job_id": job_id} for job_id in gone])
        await session.run(delete(jobs).where(session.any_of(jobs.c.id, gone)))
        await session.run(delete(graph_locks).where(session.any_of(graph_locks.c.job_id, gone)))
    return len(gone)


async def due_jobs(
    session: Session, ttl_s: float | None, limit: int | None = None, *, among: Sequence[int] | None = None
) -> list[int]:
    """Jobs that may go now, in the order of their ids: nothing that they have made is needed."""
    due = (await _due(session, ttl_s)).subquery()
    kept = exists().where(table_context_refs.c.job_id == due.c.id, ~table_context_refs.c.dropping)
    chosen = select(due.c.id).where(~kept).limit(limit)
    if among is not None:
        chosen = chosen.where(session.any_of(due.c.id, among))
    return sorted(row.id for row in await session.rows(chosen))


async def all_due(session: Session, ttl_s: float | None) -> list[int]:
    """All jobs whose time is over, whether they may go at once or wait for a table that is in use."""
    return sorted(row.id for row in await session.rows(await _due(session, ttl_s)))


async def count_tables(session: Session, job_ids: Sequence[int]) -> int:
    """How many tables these jobs have."""
    theirs = (session.any_of(table_context_refs.c.job_id, job_ids), ~table_context_refs.c.dropping)
    return int(await session.scalar(select(func.count()).select_from(table_context_refs).where(*theirs)))


async def _due(session: Session, ttl_s: float | None) -> CompoundSelect[tuple[int]]:
    """Jobs whose time is over. An entry that says how many of its runs it keeps keeps these, however old they are."""
    entry = registered_jobs.c
    newest = (jobs.c.created_at.desc(), jobs.c.id.desc())
    place = func.row_number().over(partition_by=jobs.c.registered_job_id, order_by=newest).label("place")
    ranked = (
        select(jobs.c.id, entry.keep_last, place)
        .join(registered_jobs, entry.id == jobs.c.registered_job_id)
        .where(entry.keep_last.is_not(None), _ENDED)
        .subquery()
    )
    surplus = select(jobs.c.id).join(ranked, ranked.c.id == jobs.c.id).where(ranked.c.place > ranked.c.keep_last)
    old = select(jobs.c.id).outerjoin(registered_jobs, entry.id == jobs.c.registered_job_id)
    limit = await session.now() - timedelta(seconds=ttl_s or 0)
    # nothing is younger than its end: by the time of its creation, an index finds it
    old = old.where(_ENDED, jobs.c.created_at < limit, jobs.c.completed_at < limit, entry.keep_last.is_(None))
    if ttl_s is None:
        old = old.where(jobs.c.id.is_(None))
    return union(surplus.where(*_is_done_with()), old.where(*_is_done_with()))


def _is_done_with() -> list[ColumnElement[bool]]:
    """All was told downstream, the metrics have counted it for good, and no backfill that goes on counts on it."""
    horizon = select(metrics.c.number).where(metrics.c.name == HORIZON[0]).scalar_subquery()
    filling = exists().where(backfills.c.id == jobs.c.backfill_id, backfills.c.status == BackfillStatus.RUNNING)
    return [
        jobs.c.open_tasks == 0,
        ~exists().where(ripples.c.job_id == jobs.c.id),
        ~exists().where(events.c.job_id == jobs.c.id, events.c.id > func.coalesce(horizon, 0)),
        ~filling,
    ]
