"""Retention of jobs: which jobs are due for removal, and the removal of their rows.

One short transaction deletes the job's row, with its key, and the row of its graph's lock. After that the job cannot be
found or cleared. Its tasks, runs, edges and groups are deleted afterwards in steps; see `job_remains`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, CompoundSelect, delete, exists, func, select, union

from aaiclick.orchestration.rules.schedules.fires import BackfillStatus
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.object_tables.references import free_pins
from aaiclick.orchestration.store.reading.metrics import HORIZON
from aaiclick.orchestration.store.retention.table_ages import mark_tables_of
from aaiclick.orchestration.store.retention.table_drops import is_remembered
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
"""Jobs that one transaction deletes, at most."""

_ENDED = jobs.c.status.in_(sorted(ENDED_JOB))


async def mark_tables(session: Session, ttl_s: float | None) -> int:
    """Mark some tables of due jobs for dropping; return how many. A job is removed when it has no unmarked table."""
    due = (await _due(session, ttl_s)).subquery()
    return await mark_tables_of(session, jobs.c.id.in_(select(due.c.id)))


async def remove_jobs(session: Session, ttl_s: float | None) -> int:
    """Delete the rows of up to AT_ONCE jobs that may go; return how many.

    A transaction that clears a job or adds to its graph holds the graph's lock; such a job is skipped. The conditions
    are checked again under the locks, since a job may have been cleared in between.
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
        await free_pins(session, gone)  # pins under a job's own id are those of its result
        await insert_missing(session, gone_jobs, [{"job_id": job_id} for job_id in gone])
        await session.run(delete(jobs).where(session.any_of(jobs.c.id, gone)))
        await session.run(delete(graph_locks).where(session.any_of(graph_locks.c.job_id, gone)))
    return len(gone)


async def due_jobs(
    session: Session, ttl_s: float | None, limit: int | None = None, *, among: Sequence[int] | None = None
) -> list[int]:
    """Return up to `limit` due jobs whose tables are all gone, marked for dropping or remembered, ordered by id.

    With `among`, only jobs of these ids are considered.
    """
    due = (await _due(session, ttl_s)).subquery()
    table = table_context_refs.c
    kept = exists().where(table.job_id == due.c.id, ~table.dropping, ~is_remembered())
    chosen = select(due.c.id).where(~kept).limit(limit)
    if among is not None:
        chosen = chosen.where(session.any_of(due.c.id, among))
    return sorted(row.id for row in await session.rows(chosen))


async def all_due(session: Session, ttl_s: float | None) -> list[int]:
    """Return all due jobs, ordered by id, including those that wait for a table which is in use."""
    return sorted(row.id for row in await session.rows(await _due(session, ttl_s)))


async def count_tables(session: Session, job_ids: Sequence[int]) -> int:
    """Return the number of tables of these jobs that are not marked for dropping."""
    theirs = (session.any_of(table_context_refs.c.job_id, job_ids), ~table_context_refs.c.dropping, ~is_remembered())
    return int(await session.scalar(select(func.count()).select_from(table_context_refs).where(*theirs)))


async def _due(session: Session, ttl_s: float | None) -> CompoundSelect[tuple[int]]:
    """Select the jobs that are due for removal.

    An entry with `keep_last` keeps that many of its ended jobs, whatever their age. Other jobs go by age; `ttl_s` None
    keeps them forever.
    """
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
    # a job is created before it ends: the condition on `created_at` excludes nothing, and has an index
    old = old.where(_ENDED, jobs.c.created_at < limit, jobs.c.completed_at < limit, entry.keep_last.is_(None))
    if ttl_s is None:
        old = old.where(jobs.c.id.is_(None))
    return union(surplus.where(*_is_done_with()), old.where(*_is_done_with()))


def _is_done_with() -> list[ColumnElement[bool]]:
    """Return the conditions: no open task, no ripple, every event counted by the metrics, no running backfill."""
    horizon = select(metrics.c.number).where(metrics.c.name == HORIZON[0]).scalar_subquery()
    filling = exists().where(backfills.c.id == jobs.c.backfill_id, backfills.c.status == BackfillStatus.RUNNING)
    return [
        jobs.c.open_tasks == 0,
        ~exists().where(ripples.c.job_id == jobs.c.id),
        ~exists().where(events.c.job_id == jobs.c.id, events.c.id > func.coalesce(horizon, 0)),
        ~filling,
    ]
