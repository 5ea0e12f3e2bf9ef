"""The only module that changes the status of tasks and jobs; the event is written in the same transaction.

Every move is guarded by its source states. The two hot moves, claim and complete, are statements of the dialects,
called from `claims/claiming` and `claim_ends`. For all other moves of tasks, the caller has locked the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Integer, Row, Select, bindparam, func, select, update

from aaiclick.ids import new_id
from aaiclick.orchestration.rules.naming.hints import ENDED
from aaiclick.orchestration.rules.states import ENDED_JOB, JOB_MOVES, TASK_MOVES, JobStatus, RunOutcome, TaskStatus
from aaiclick.orchestration.store.definitions.column_types import LongText
from aaiclick.orchestration.store.dialects.contract import Dialect, EndedTask
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, groups, jobs, ripples, tasks

_LOCKED = (
    tasks.c.id,
    tasks.c.job_id,
    tasks.c.group_id,
    tasks.c.status,
    tasks.c.epoch,
    tasks.c.worker_id,
    tasks.c.attempt,
    tasks.c.generation,
    tasks.c.crash_count,
    tasks.c.lost_count,
    tasks.c.unmet_count,
    tasks.c.gated,
    tasks.c.trigger_rule,
    tasks.c.awaited_count,
    tasks.c.amiss,
    tasks.c.dependents_count,
    tasks.c.critical,
    tasks.c.priority,
    tasks.c.reserved_for,
    tasks.c.lane,
    tasks.c.run_after,
    tasks.c.max_retries,
    tasks.c.retry_policy,
    tasks.c.claimed_at,
    tasks.c.started_at,
    tasks.c.log_path,
)


async def lock_tasks(session: Session, ids: Sequence[int]) -> Sequence[Row[Any]]:
    """Lock these tasks in the order of their ids; return their rows as they are under the lock."""
    if not ids:
        return []
    return await session.rows(session.built(_lock), {"ids": session.dialect.pack(sorted(ids))})


def _lock(dialect: Dialect) -> Select[Any]:
    chosen = select(*_LOCKED).where(dialect.in_ids(tasks.c.id))
    return chosen.order_by(tasks.c.id).with_for_update(key_share=True)


async def lock_groups(session: Session, ids: Sequence[int]) -> Sequence[Row[Any]]:
    """Lock these groups, children before parents; return their rows as they are under the lock."""
    if not ids:
        return []
    return await session.rows(session.built(_lock_groups), {"ids": session.dialect.pack(sorted(ids))})


def _lock_groups(dialect: Dialect) -> Select[Any]:
    chosen = select(groups).where(dialect.in_ids(groups.c.id))
    return chosen.order_by(groups.c.depth.desc(), groups.c.id).with_for_update(key_share=True)


async def move_tasks(
    session: Session, move: str, locked: Sequence[Row[Any]], now: datetime, values: Mapping[str, Any] | None = None
) -> list[Row[Any]]:
    """Apply one move to the locked rows whose status allows it; return these rows as they were before."""
    rule = TASK_MOVES[move]
    moved = [row for row in locked if row.status in rule.sources]
    if not moved:
        return []
    await session.run(
        update(tasks)
        .where(session.any_of(tasks.c.id, [row.id for row in moved]), tasks.c.status.in_(sorted(rule.sources)))
        .values(status=rule.target, **(values or {}))
    )
    await session.insert(events, [task_event(row, move, rule.target, now) for row in moved])
    return moved


async def move_each(
    session: Session,
    moves: Sequence[str],
    changes: Sequence[tuple[Row[Any], Mapping[str, Any]]],
    now: datetime,
    why: str | None = None,
) -> None:
    """Apply a chain of moves to rows that each get values of their own; write an event for every move of the chain.

    The status of each row must allow the first move. `why` is the detail of the event of that move.
    """
    target = TASK_MOVES[moves[-1]].target
    for row, values in changes:
        if row.status not in TASK_MOVES[moves[0]].sources:
            raise AssertionError(f"task {row.id} is {row.status}: it cannot {moves[0]}")
        await session.run(update(tasks).where(tasks.c.id == row.id).values(status=target, **values))
    chain = [(row, move, why if move == moves[0] else None) for row, _ in changes for move in moves]
    noted = [task_event(row, move, TASK_MOVES[move].target, now, detail) for row, move, detail in chain]
    await session.insert(events, noted)


def task_event(row: Any, move: str, status: str, now: datetime, detail: str | None = None) -> dict[str, Any]:
    """Return the row of `events` for one task's move."""
    return {
        "job_id": row.job_id,
        "task_id": row.id,
        "epoch": row.epoch,
        "move": move,
        "status": str(status),
        "worker_id": row.worker_id,
        "at": now,
        "detail": detail,
    }


def run_row(
    row: Any, outcome: RunOutcome, now: datetime, error: str | None = None, trace: str | None = None
) -> dict[str, Any]:
    """Return the row of `runs` for a run that ended."""
    return {
        "task_id": row.id,
        "epoch": row.epoch,
        "attempt": row.attempt,
        "generation": row.generation,
        "worker_id": row.worker_id,
        "claimed_at": row.claimed_at,
        "started_at": row.started_at or row.claimed_at,
        "ended_at": now,
        "outcome": outcome,
        "error": error,
        "traceback": trace,
        "log_path": row.log_path,
    }


async def doom_tasks(
    session: Session, locked: Sequence[Row[Any]], now: datetime, cause_id: int, error: str
) -> list[EndedTask]:
    """Move tasks from PENDING to UPSTREAM_FAILED, since the task `cause_id` failed; return those that moved."""
    facts = {"completed_at": now, "cause_id": cause_id, "error": error}
    moved = await move_tasks(session, "doom", locked, now, facts)
    return [ended_task(row, TaskStatus.UPSTREAM_FAILED) for row in moved]


async def skip_tasks(session: Session, locked: Sequence[Row[Any]], now: datetime) -> list[EndedTask]:
    """Move tasks that are not needed from PENDING to SKIPPED; return those that moved."""
    moved = await move_tasks(session, "skip", locked, now, {"completed_at": now})
    return [ended_task(row, TaskStatus.SKIPPED) for row in moved]


def ended_task(row: Any, status: str) -> EndedTask:
    return EndedTask(row.id, row.job_id, row.group_id, row.dependents_count, row.critical, status)


# ---------------------------------------------------------------- jobs


async def move_job(
    session: Session,
    move: str,
    job_id: int,
    now: datetime,
    values: Mapping[str, Any] | None = None,
    detail: str | None = None,
) -> bool:
    """Apply one move to a job if its status allows it; return whether it did. `detail` goes into the event."""
    rule = JOB_MOVES[move]
    changed = await session.run(
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.status.in_(sorted(rule.sources)))
        .values(status=rule.target, **(values or {}))
    )
    if changed:
        await session.insert(events, [_job_event(job_id, move, rule.target, now, detail)])
    return bool(changed)


async def note_repair(session: Session, job_id: int, status: str, now: datetime, detail: str) -> None:
    """Write an event that says what was repaired in a job; it changes no status."""
    await session.insert(events, [_job_event(job_id, "repair", status, now, detail)])


async def note_growth(session: Session, job_id: int, status: str, count: int) -> None:
    """Write an event that says how many tasks were added to a job; metrics count them by it. It changes no status."""
    if count:
        await session.insert(events, [_job_event(job_id, "grow", status, await session.now(), str(count))])


def _job_event(job_id: int, move: str, status: str, now: datetime, detail: str | None = None) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "task_id": None,
        "epoch": None,
        "move": move,
        "status": str(status),
        "worker_id": None,
        "at": now,
        "detail": detail,
    }


async def start_jobs(session: Session, job_ids: Sequence[int]) -> None:
    """Move those of these jobs that are PENDING to RUNNING."""
    waiting = await session.rows(
        select(jobs.c.id).where(session.any_of(jobs.c.id, sorted(job_ids)), jobs.c.status == JobStatus.PENDING)
    )
    if waiting:
        now = await session.now()
        for row in waiting:
            await move_job(session, "start", row.id, now, {"started_at": now})


def _all_complete(job: Row[Any]) -> bool:
    return bool(job.completed_tasks + job.skipped_tasks == job.total_tasks)


STOP = "stop"
"""The kind of ripple that ends a `fail_fast` job after a critical failure."""

COUNTS = ("total_tasks", "open_tasks", "completed_tasks", "failed_tasks", "failed_critical", "skipped_tasks")
_AFTER = tuple(jobs.c[name] for name in (*COUNTS, "status", "fail_fast"))
_COUNT = (
    update(jobs)
    .where(jobs.c.id == bindparam("job"))
    .values({name: jobs.c[name] + bindparam(f"more_{name}", type_=Integer) for name in COUNTS})
    .values(error=func.coalesce(jobs.c.error, bindparam("first_error", type_=LongText)))
)
_COUNT_RETURNING = _COUNT.returning(*_AFTER)
_COUNTED = select(*_AFTER).where(jobs.c.id == bindparam("job"))


async def job_outcome(session: Session, job_id: int, failed_critical: int, all_completed: bool) -> str:
    """Return the move that ends a job whose tasks have all ended: `fail`, `complete` or `cancel`.

    `cancel` if tasks are still CANCELLED: of a cancelled job, only a part may have been cleared and run again.
    """
    if failed_critical:
        return "fail"
    if all_completed:
        return "complete"
    cancelled = select(tasks.c.id).where(tasks.c.job_id == job_id, tasks.c.status == TaskStatus.CANCELLED).limit(1)
    return "complete" if await session.first(cancelled) is None else "cancel"


async def count_in_job(session: Session, job_id: int, counts: Mapping[str, int], error: str | None) -> bool:
    """Add to a job's counters, and end the job when its open tasks reach zero; `error` is stored unless it has one.

    The job's row must be the last lock of the transaction. Return whether a STOP ripple was left to end the rest of a
    `fail_fast` job: that needs locks that come before the job's row.
    """
    values = {"job": job_id, "first_error": error} | {f"more_{name}": counts.get(name, 0) for name in COUNTS}
    if session.dialect.update_returning:
        row = await session.first(_COUNT_RETURNING, values)
    else:
        await session.run(_COUNT, values)
        row = await session.first(_COUNTED, {"job": job_id})
    if row is None or row.status in ENDED_JOB:
        return False
    if row.open_tasks == 0:
        now = await session.now()
        move = await job_outcome(session, job_id, row.failed_critical, _all_complete(row))
        if row.status == JobStatus.PENDING and move == "complete":  # all tasks were skipped: no claim has started it
            await move_job(session, "start", job_id, now, {"started_at": now})
        await move_job(session, move, job_id, now, {"completed_at": now})
        session.hints.add(ENDED)
        return False
    if not (row.fail_fast and counts.get("failed_critical", 0) > 0):
        return False
    stop = {"id": new_id(), "job_id": job_id, "kind": STOP, "node_id": job_id, "node_type": "job", "after_id": 0}
    await session.insert(ripples, [stop])
    return True
