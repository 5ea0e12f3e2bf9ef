"""Recovery of claims whose session has ended, and of jobs that a `job_test` abandoned.

A task whose worker is gone passes through PENDING_CLEANUP to PENDING, or to FAILED if that happened too often. Only a
run that had begun counts as lost: a claim that was made after the session's end, or whose body is not known to have
begun, does not count. Every step is conditional, so any number of processes may do this at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, exists, or_, select

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.rules.states import ENDED_JOB, LIVE_TASK, JobStatus, RunOutcome, TaskStatus
from aaiclick.orchestration.store.claim_ends import end_claims
from aaiclick.orchestration.store.moves.affinity import lanes_after
from aaiclick.orchestration.store.moves.early_endings import end_job, lock_graph
from aaiclick.orchestration.store.moves.queue import make_ready
from aaiclick.orchestration.store.moves.ripples import settle
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, jobs, tasks, workers
from aaiclick.orchestration.store.transitions import ended_task, lock_tasks, move_each, run_row

AT_ONCE = 500
"""Maximum number of claims that one transaction recovers."""


async def recover_claims(session: Session, losses_max: int, limit: int = AT_ONCE) -> int:
    """Take up to `limit` claims from sessions that are not live; return their number.

    It looks for such claims, not for sessions that just ended: a claim that was committed late is found too. A task
    is given up when it has been lost `losses_max` times.
    """
    orphans = await _orphans(session, limit)
    free = await _unlocked(session, sorted(orphans))
    return await _recover(session, orphans, free, losses_max, None) if free else 0


async def recover_claims_of(session: Session, worker_ids: Sequence[int], losses_max: int, why: str) -> int:
    """Take all claims from these workers, whose sessions were ended in this transaction; return their number.

    It waits for whoever has locked one of the tasks, so that nothing is left for a later transaction. `why` is told in
    the events and in the history of the runs.
    """
    orphans = await _orphans(session, None, claims.c.worker_id.in_(worker_ids))
    return await _recover(session, orphans, sorted(orphans), losses_max, why)


async def _recover(
    session: Session, orphans: Mapping[int, Orphan], ids: Sequence[int], losses_max: int, why: str | None
) -> int:
    rows = [row for row in await lock_tasks(session, ids) if _is_orphan(row, orphans[row.id])]
    if not rows:
        return 0
    now = await session.now()
    ends = {row.id: orphans[row.id].session_end for row in rows}
    counted = {row.id for row in rows if counts_as_loss(row, ends[row.id])}
    losses = {row.id: row.lost_count + (row.id in counted) for row in rows}
    causes = {row.id: _cause(row, losses[row.id] if row.id in counted else None, why) for row in rows}
    given_up = [row for row in rows if row.id in counted and losses[row.id] >= losses_max]
    again = [row for row in rows if row not in given_up]
    lanes = await lanes_after(session, [row for row in rows if row.id in counted], failed=True)
    lane_of = {row.id: lanes.get(row.id, row.lane) for row in rows}
    freed = {"worker_id": None, "started_at": None}
    await move_each(
        session,
        ("recover", "retry"),
        [
            (row, {**freed, "epoch": row.epoch + 1, "lost_count": losses[row.id], "lane": lane_of[row.id]})
            for row in again
        ],
        now,
        why,
    )
    ended = {"completed_at": now, "started_at": None}
    await move_each(
        session,
        ("recover", "give_up"),
        [
            (row, {**ended, "lost_count": losses[row.id], "error": causes[row.id], "lane": lane_of[row.id]})
            for row in given_up
        ],
        now,
        why,
    )
    await end_claims(session, [run_row(row, RunOutcome.LOST, now, causes[row.id]) for row in rows])
    await make_ready(session, [row.id for row in again])
    errors = {row.job_id: causes[row.id] for row in reversed(given_up) if row.critical}
    await settle(session, [ended_task(row, TaskStatus.FAILED) for row in given_up], errors)
    return len(rows)


class Orphan(NamedTuple):
    """A claim without a live session, and when that session ended; None if the worker's row is gone."""

    epoch: int
    worker_id: int
    session_end: datetime | None


def counts_as_loss(row: Any, session_end: datetime | None) -> bool:
    """Return whether a run counts as lost: its body had begun, under a claim made before the session's end."""
    made_in_time = session_end is not None and row.claimed_at < session_end
    return made_in_time and (row.status == TaskStatus.RUNNING or row.started_at is not None)


async def _orphans(session: Session, limit: int | None, *which: ColumnElement[bool]) -> dict[int, Orphan]:
    """Return up to `limit` claims without a live session, by task."""
    found = await session.rows(
        select(claims.c.task_id, claims.c.epoch, claims.c.worker_id, workers.c.expires_at)
        .outerjoin(workers, workers.c.id == claims.c.worker_id)
        .where(or_(workers.c.id.is_(None), workers.c.status == WorkerStatus.STOPPED), *which)
        .limit(limit)
    )
    return {row.task_id: Orphan(row.epoch, row.worker_id, row.expires_at) for row in found}


def holds_claims() -> ColumnElement[bool]:
    """Return the condition that a row of `workers` still has claims, which are to be recovered before it may go."""
    return exists().where(claims.c.worker_id == workers.c.id)


async def _unlocked(session: Session, ids: list[int]) -> list[int]:
    """Lock and return those of these tasks that no other transaction has locked.

    A worker that was paused within a transaction may hold locks for long; the other tasks need not wait for it.
    """
    if not ids:
        return []
    which = session.any_of(tasks.c.id, ids)
    found = await session.rows(
        select(tasks.c.id).where(which).order_by(tasks.c.id).with_for_update(skip_locked=True, key_share=True)
    )
    return [row.id for row in found]


def _is_orphan(row: Row[Any], claim: Orphan) -> bool:
    return (row.epoch, row.worker_id) == claim[:2] and row.status in LIVE_TASK


def _cause(row: Row[Any], losses: int | None, why: str | None) -> str:
    ended = f"WorkerLost: The session of worker {row.worker_id} ended{f' ({why})' if why else ''}"
    if losses is None:
        return f"{ended} before the body began (not counted)."
    return f"{ended} while it held the task (lost {losses} times)."


async def abandoned_jobs(session: Session) -> list[int]:
    """Return open jobs that are reserved for a worker whose session ended: its `job_test` will never end them."""
    return [row.id for row in await session.rows(_ABANDONED)]


async def abandon_job(session: Session, job_id: int) -> bool:
    """Cancel such a job; return False if it was ended, or reserved for another worker, meanwhile."""
    await lock_graph(session, job_id)
    if await session.first(_ABANDONED.where(jobs.c.id == job_id)) is None:
        return False
    return await end_job(session, job_id, "cancel", "JobAbandoned: The process that ran it with job_test is gone.")


_ABANDONED = (
    select(jobs.c.id)
    .join(workers, workers.c.id == jobs.c.reserved_for)
    .where(
        jobs.c.status.in_(sorted(set(JobStatus) - ENDED_JOB)),
        jobs.c.open_tasks > 0,
        workers.c.status == WorkerStatus.STOPPED,
    )
)
