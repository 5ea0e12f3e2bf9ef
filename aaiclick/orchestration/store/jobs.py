"""Questions about jobs and their tasks, and what is done to a job as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, delete, func, select, update

from aaiclick.orchestration.models import Group, Job, JobStatus, Task
from aaiclick.orchestration.rules.names import like_pattern
from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK, LIVE_TASK, TaskStatus
from aaiclick.orchestration.store.queue import leave_delay, leave_queue, make_ready
from aaiclick.orchestration.store.ripples import lock_groups
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, events, graph_locks, groups, jobs, ripples, runs, tasks
from aaiclick.orchestration.store.transitions import end_claims, lock_tasks, move_job, move_tasks, run_row

# ---------------------------------------------------------------- questions


async def get_job(session: Session, job_id: int) -> Job | None:
    row = await session.first(select(jobs).where(jobs.c.id == job_id))
    return None if row is None else Job.from_row(row)


async def get_job_by_key(session: Session, key: str) -> Job | None:
    row = await session.first(select(jobs).where(jobs.c.key == key))
    return None if row is None else Job.from_row(row)


def _matching(choice: Select[Any], status: JobStatus | None, name_like: str | None) -> Select[Any]:
    if status is not None:
        choice = choice.where(jobs.c.status == status)
    if name_like is not None:
        pattern, escape = like_pattern(name_like)
        choice = choice.where(jobs.c.name.like(pattern, escape=escape))
    return choice


async def list_jobs(
    session: Session, status: JobStatus | None, name_like: str | None, limit: int, offset: int
) -> list[Job]:
    """Newest first."""
    choice = _matching(select(jobs), status, name_like).order_by(jobs.c.id.desc()).limit(limit).offset(offset)
    return [Job.from_row(row) for row in await session.rows(choice)]


async def count_jobs(session: Session, status: JobStatus | None, name_like: str | None) -> int:
    return int(await session.scalar(_matching(select(func.count()).select_from(jobs), status, name_like)))


async def get_task(session: Session, task_id: int) -> Task | None:
    row = await session.first(select(tasks).where(tasks.c.id == task_id))
    return None if row is None else Task.from_row(row)


async def get_tasks(session: Session, job_id: int) -> list[Task]:
    """All tasks of a job, in the order in which they were made."""
    rows = await session.rows(select(tasks).where(tasks.c.job_id == job_id).order_by(tasks.c.id))
    return [Task.from_row(row) for row in rows]


async def get_groups(session: Session, job_id: int) -> list[Group]:
    """All groups of a job, in the order in which they were made."""
    rows = await session.rows(select(groups).where(groups.c.job_id == job_id).order_by(groups.c.id))
    return [Group.from_row(row) for row in rows]


async def get_group_tasks(session: Session, group_id: int) -> list[Task]:
    rows = await session.rows(select(tasks).where(tasks.c.group_id == group_id).order_by(tasks.c.id))
    return [Task.from_row(row) for row in rows]


async def get_child_groups(session: Session, group_id: int) -> list[Group]:
    rows = await session.rows(select(groups).where(groups.c.parent_group_id == group_id).order_by(groups.c.id))
    return [Group.from_row(row) for row in rows]


async def find_stored(session: Session, ids: Sequence[int]) -> dict[int, int]:
    """Those of these tasks and groups that are stored, with their jobs."""
    found: dict[int, int] = {}
    for table in (tasks, groups):
        rows = await session.rows(select(table.c.id, table.c.job_id).where(session.any_of(table.c.id, sorted(ids))))
        found.update((row.id, row.job_id) for row in rows)
    return found


async def get_runs(session: Session, task_id: int) -> Sequence[Row[Any]]:
    return await session.rows(select(runs).where(runs.c.task_id == task_id).order_by(runs.c.epoch))


async def get_events(session: Session, job_id: int) -> Sequence[Row[Any]]:
    return await session.rows(select(events).where(events.c.job_id == job_id).order_by(events.c.id))


async def get_dependencies(session: Session, job_id: int) -> Sequence[Row[Any]]:
    return await session.rows(select(dependencies).where(dependencies.c.job_id == job_id))


async def get_results(session: Session, task_ids: Sequence[int]) -> dict[int, tuple[str, str | None]]:
    """Status and stored result of these tasks."""
    if not task_ids:
        return {}
    which = session.any_of(tasks.c.id, sorted(task_ids))
    rows = await session.rows(select(tasks.c.id, tasks.c.status, tasks.c.result).where(which))
    return {row.id: (row.status, row.result) for row in rows}


async def count_tasks_by_status(session: Session, job_id: int) -> dict[str, int]:
    rows = await session.rows(
        select(tasks.c.status, func.count().label("size")).where(tasks.c.job_id == job_id).group_by(tasks.c.status)
    )
    return {row.status: row.size for row in rows}


# ---------------------------------------------------------------- cancel


async def cancel_job(session: Session, job_id: int) -> bool:
    """End everything of this job that has not ended; False if there is no such job, or it ended before.

    Nobody adds to its graph meanwhile; looking again once the job's row is ours finds whatever came before.
    """
    job = await get_job(session, job_id)
    if job is None or job.status in ENDED_JOB:
        return False
    await _lock_graph(session, job_id)
    await _cancel_tasks(session, job_id)
    now = await session.now()
    if not await move_job(session, "cancel", job_id, now, {"completed_at": now, "open_tasks": 0}):
        return False
    await _cancel_tasks(session, job_id)
    await session.run(delete(ripples).where(ripples.c.job_id == job_id))
    return True


async def _lock_graph(session: Session, job_id: int) -> None:
    """Let nobody add tasks or groups meanwhile."""
    await session.first(select(graph_locks.c.job_id).where(graph_locks.c.job_id == job_id).with_for_update())


async def _cancel_tasks(session: Session, job_id: int) -> None:
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
    await end_claims(session, [run_row(row, "cancelled", now) for row in moved if row.status in LIVE_TASK])
    await recount_groups(session, job_id)


async def recount_groups(session: Session, job_id: int) -> None:
    """Set the groups' counters from what their tasks are now, children before parents."""
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
    failed_count = dict(open_count)
    for tally in tallies:
        if tally.status != TaskStatus.COMPLETED:
            open_count[tally.group_id] += tally.size
            failed_count[tally.group_id] += tally.size if tally.status in ENDED_TASK else 0
    for row in locked:
        if row.parent_group_id is not None:
            open_count[row.parent_group_id] += bool(open_count[row.id])
            failed_count[row.parent_group_id] += bool(failed_count[row.id])
        counts = {"open_count": open_count[row.id], "failed_count": failed_count[row.id]}
        if counts != {"open_count": row.open_count, "failed_count": row.failed_count}:
            await session.run(update(groups).where(groups.c.id == row.id).values(**counts))


# ---------------------------------------------------------------- reserve


async def reserve_job(session: Session, job_id: int, placement: int) -> None:
    """Move what is left of a job to a placement of its own, from which only its owner claims.

    What is claimed moves too: when it is given back, or tried again, it is the owner's.
    """
    await _lock_graph(session, job_id)
    unfinished = (tasks.c.job_id == job_id, tasks.c.status.not_in(sorted(ENDED_TASK)))
    ids = [row.id for row in await session.rows(select(tasks.c.id).where(*unfinished))]
    if ids:
        await leave_queue(session, session.any_of(tasks.c.id, ids))
        await lock_tasks(session, ids)
        await leave_queue(session, session.any_of(tasks.c.id, ids))
        await session.run(update(tasks).where(session.any_of(tasks.c.id, ids)).values(placement=placement))
        await make_ready(session, ids)
    await session.run(update(jobs).where(jobs.c.id == job_id).values(placement=placement))
