"""The end of a job that has open tasks: it was cancelled, exceeded its time limit, or fails fast.

Locks are taken in the usual order: the graph's row, the queue, tasks by id, groups with children first, the job last.
"""

from __future__ import annotations

from sqlalchemy import delete, func, select, update

from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS
from aaiclick.orchestration.rules.states import COMPLETE_TASK, ENDED_JOB, ENDED_TASK, LIVE_TASK, RunOutcome
from aaiclick.orchestration.store.claim_ends import end_claims
from aaiclick.orchestration.store.moves.queue import leave_delay, leave_queue
from aaiclick.orchestration.store.object_tables.references import free_pins
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import graph_locks, groups, jobs, ripples, tasks
from aaiclick.orchestration.store.transitions import lock_groups, lock_tasks, move_job, move_tasks, run_row

COUNTING = ("release", "open")
"""Kinds of ripples that outlive the job's end: they keep the counters exact, so that its tasks can be cleared."""


async def cancel_job(session: Session, job_id: int) -> bool:
    """Cancel a job with all its open tasks; return False if there is no such job, or it had ended before."""
    status = await session.scalar(select(jobs.c.status).where(jobs.c.id == job_id))
    if status is None or status in ENDED_JOB:
        return False
    await lock_graph(session, job_id)
    return await end_job(session, job_id, "cancel")


async def stop_job(session: Session, job_id: int) -> bool:
    """Fail a `fail_fast` job; return False if its failed tasks were cleared meanwhile, or it has ended."""
    await lock_graph(session, job_id)
    job = await session.first(select(jobs.c.fail_fast, jobs.c.failed_critical).where(jobs.c.id == job_id))
    if job is None or not (job.fail_fast and job.failed_critical):
        return False
    return await end_job(session, job_id, "fail")


async def lock_graph(session: Session, job_id: int) -> bool:
    """Lock the job's graph, so that no other transaction changes it; return False if there is no such job."""
    locked = select(graph_locks.c.job_id).where(graph_locks.c.job_id == job_id).with_for_update()
    return await session.first(locked) is not None


async def end_job(session: Session, job_id: int, move: str, error: str | None = None) -> bool:
    """End a job whose graph is locked, with all its open tasks; return False if it had ended before.

    The tasks are cancelled once more after the job's row is locked: this finds what was committed until then.
    """
    await cancel_tasks(session, job_id)
    now = await session.now()
    facts = {"completed_at": now, "open_tasks": 0} | ({} if error is None else {"error": error})
    if not await move_job(session, move, job_id, now, facts):
        return False
    await cancel_tasks(session, job_id)
    left = (ripples.c.job_id == job_id, ripples.c.kind.not_in(COUNTING))
    await session.run(delete(ripples).where(*left))
    session.hints.add(ENDED)
    return True


async def cancel_tasks(session: Session, job_id: int) -> None:
    """Cancel all open tasks of a job, and recount its groups; the job's own row is left to the caller."""
    unfinished = (tasks.c.job_id == job_id, tasks.c.status.not_in(sorted(ENDED_TASK)))
    ids = [row.id for row in await session.rows(select(tasks.c.id).where(*unfinished))]
    if not ids:
        return
    await leave_queue(session, session.any_of(tasks.c.id, ids))
    locked = await lock_tasks(session, ids)
    await leave_queue(session, session.any_of(tasks.c.id, ids))
    await leave_delay(session, ids)
    now = await session.now()
    changes = {"epoch": tasks.c.epoch + 1, "completed_at": now, "run_after": None}
    moved = await move_tasks(session, "cancel", locked, now, changes)
    live = [row for row in moved if row.status in LIVE_TASK]
    await end_claims(session, [run_row(row, RunOutcome.CANCELLED, now) for row in live])
    await free_pins(session, [row.id for row in moved])
    if live:
        session.hints.add(ORDERS)
    await recount_groups(session, job_id)


async def recount_groups(session: Session, job_id: int) -> None:
    """Set the groups' counters from the statuses of their tasks, children before parents."""
    found = await session.rows(select(groups.c.id).where(groups.c.job_id == job_id))
    if not found:
        return
    locked = await lock_groups(session, [row.id for row in found])
    tallies = await session.rows(
        select(tasks.c.group_id, tasks.c.status, func.count().label("size"))
        .where(tasks.c.job_id == job_id, tasks.c.group_id.is_not(None))
        .group_by(tasks.c.group_id, tasks.c.status)
    )
    open_count = dict.fromkeys((row.id for row in locked), 0)
    failed_count, unended_count = dict(open_count), dict(open_count)
    for tally in tallies:
        if tally.status not in COMPLETE_TASK:
            open_count[tally.group_id] += tally.size
            failed_count[tally.group_id] += tally.size if tally.status in ENDED_TASK else 0
            unended_count[tally.group_id] += 0 if tally.status in ENDED_TASK else tally.size
    for row in locked:
        if row.parent_group_id is not None:
            open_count[row.parent_group_id] += bool(open_count[row.id])
            failed_count[row.parent_group_id] += bool(failed_count[row.id])
            unended_count[row.parent_group_id] += bool(unended_count[row.id])
        counted = (open_count[row.id], failed_count[row.id], unended_count[row.id])
        counts = dict(zip(("open_count", "failed_count", "unended_count"), counted, strict=True))
        if counts != {name: row._mapping[name] for name in counts}:
            await session.run(update(groups).where(groups.c.id == row.id).values(**counts))
