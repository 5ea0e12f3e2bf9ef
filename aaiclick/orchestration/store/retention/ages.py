"""Retention of times of schedules, backfills, workers, nodes and audit entries.

Each `prune_…` deletes up to STEP rows in one short transaction, and returns their number. Each `count_…` returns how
many rows are old enough. `ttl_s` is the age in seconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import takewhile

from sqlalchemy import Column, ColumnElement, Table, delete, exists, func, or_, select

from aaiclick.orchestration.models import JobStatus, WorkerStatus
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.rules.schedules.fires import BackfillStatus, FireOutcome
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.store.claims.recoveries import holds_claims
from aaiclick.orchestration.store.definitions.access_tables import audit
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.schedules.registered_jobs import lock_registered_job
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import backfills, fires, jobs, registered_jobs, workers

STEP = 1_000
"""Rows that one transaction deletes, at most."""

_OPEN_JOB = sorted(set(JobStatus) - ENDED_JOB)


# ---------------------------------------------------------------- times of schedules


async def prune_fires(session: Session, ttl_s: float) -> int:
    """Delete times of one entry that were due, and were recorded, longer ago than `ttl_s`.

    The entry is locked, and only times before its `next_run_at` are deleted, so no deleted time can fire again by
    itself.
    """
    limit = await _before(session, ttl_s)
    old = exists().where(*_old_fires(limit))
    entry_id = await session.scalar(select(registered_jobs.c.id).where(old).limit(1))
    if entry_id is None or await lock_registered_job(session, entry_id=entry_id) is None:
        return 0
    due = (
        select(fires.c.fire_at)
        .join(registered_jobs, registered_jobs.c.id == fires.c.registered_job_id)
        .where(*_old_fires(limit), registered_jobs.c.id == entry_id)
    )
    times = [row.fire_at for row in await session.rows(due.order_by(fires.c.fire_at).limit(STEP))]
    return await session.run(delete(fires).where(fires.c.registered_job_id == entry_id, fires.c.fire_at.in_(times)))


def _old_fires(limit: datetime) -> list[ColumnElement[bool]]:
    """Return the conditions for times that may go: not queued, no open job, no running backfill of the entry."""
    entry = registered_jobs.c
    filling = (backfills.c.registered_job_id == entry.id, backfills.c.status == BackfillStatus.RUNNING)
    return [
        fires.c.registered_job_id == entry.id,
        fires.c.fire_at < limit,
        fires.c.created_at < limit,
        fires.c.outcome != FireOutcome.QUEUED,
        or_(entry.next_run_at.is_(None), fires.c.fire_at < entry.next_run_at),
        ~exists().where(jobs.c.id == fires.c.job_id, jobs.c.status.in_(_OPEN_JOB)),
        ~exists().where(*filling),
    ]


async def count_fires(session: Session, ttl_s: float) -> int:
    return await _count(session, *_old_fires(await _before(session, ttl_s)), of=(fires, registered_jobs))


async def prune_backfills(session: Session, ttl_s: float) -> int:
    """Delete backfills that ended longer ago than `ttl_s` and have no job any more."""
    return await _remove(session, backfills.c.id, *_old_backfills(await _before(session, ttl_s)))


def _old_backfills(limit: datetime) -> list[ColumnElement[bool]]:
    ended = [status for status in BackfillStatus if status is not BackfillStatus.RUNNING]
    return [
        backfills.c.status.in_(ended),
        backfills.c.completed_at < limit,
        ~exists().where(jobs.c.backfill_id == backfills.c.id),
    ]


async def count_backfills(session: Session, ttl_s: float) -> int:
    return await _count(session, *_old_backfills(await _before(session, ttl_s)), of=(backfills,))


# ---------------------------------------------------------------- workers, the audit


async def prune_workers(session: Session, ttl_s: float) -> int:
    """Delete workers whose session ended longer ago than `ttl_s`, without claims and without an open reserved job."""
    return await _remove(session, workers.c.id, *_old_workers(await _before(session, ttl_s)))


def _old_workers(limit: datetime) -> list[ColumnElement[bool]]:
    return [
        workers.c.status == WorkerStatus.STOPPED,
        workers.c.last_heartbeat < limit,
        workers.c.expires_at < limit,
        ~holds_claims(),
        ~exists().where(jobs.c.reserved_for == workers.c.id, jobs.c.status.in_(_OPEN_JOB)),
    ]


async def count_workers(session: Session, ttl_s: float) -> int:
    return await _count(session, *_old_workers(await _before(session, ttl_s)), of=(workers,))


async def prune_nodes(session: Session, ttl_s: float) -> int:
    """Delete open nodes that no worker has described for `ttl_s`, and of which no worker is left.

    One that is cordoned or drains stays, so that its state is not forgotten.
    """
    return await _remove(session, nodes.c.id, *_old_nodes(await _before(session, ttl_s)))


def _old_nodes(limit: datetime) -> list[ColumnElement[bool]]:
    left = exists().where(workers.c.node_id == nodes.c.id)
    return [nodes.c.state == NodeState.OPEN, nodes.c.described_at < limit, ~left]


async def count_nodes(session: Session, ttl_s: float) -> int:
    return await _count(session, *_old_nodes(await _before(session, ttl_s)), of=(nodes,))


async def prune_audit(session: Session, ttl_s: float) -> int:
    """Delete the oldest audit entries in the order of their ids, up to the first that is young enough to stay."""
    limit = await _before(session, ttl_s)
    first = await session.rows(select(audit.c.id, audit.c.at).order_by(audit.c.id).limit(STEP))
    old = [row.id for row in takewhile(lambda row: row.at < limit, first)]
    return await session.run(delete(audit).where(session.any_of(audit.c.id, old))) if old else 0


async def count_audit(session: Session, ttl_s: float) -> int:
    limit = await _before(session, ttl_s)
    young = await session.scalar(select(func.min(audit.c.id)).where(audit.c.at >= limit))
    older = [audit.c.at < limit] if young is None else [audit.c.id < young]
    return await _count(session, *older, of=(audit,))


# ---------------------------------------------------------------- steps


async def _before(session: Session, ttl_s: float) -> datetime:
    return await session.now() - timedelta(seconds=ttl_s)


async def _count(session: Session, *old: ColumnElement[bool], of: tuple[Table, ...]) -> int:
    return int(await session.scalar(select(func.count()).select_from(*of).where(*old)))


async def _remove(session: Session, key: Column[int], *old: ColumnElement[bool]) -> int:
    """Select up to STEP rows, lock them, check the conditions again, and delete those that still meet them."""
    ids = [row[0] for row in await session.rows(select(key).where(*old).limit(STEP))]
    if not ids:
        return 0
    chosen = select(key).where(session.any_of(key, sorted(ids)), *old)
    mine = [row[0] for row in await session.rows(chosen.with_for_update(skip_locked=True))]
    return await session.run(delete(key.table).where(session.any_of(key, sorted(mine)))) if mine else 0
