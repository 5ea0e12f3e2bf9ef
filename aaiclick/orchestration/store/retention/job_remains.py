"""Removal of what removed jobs have left: first edges, then tasks with their runs, then groups; in bounded steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import delete, func, select, tuple_

from aaiclick.orchestration.rules.states import ENDED_TASK
from aaiclick.orchestration.store.definitions.access_tables import callbacks
from aaiclick.orchestration.store.object_tables.references import free_pins, in_batches
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, gone_jobs, groups, runs, tasks

JOBS_AT_ONCE = 200
STEP = 1_000
"""Tasks, groups or edges that one transaction deletes, at most."""


@dataclass(slots=True)
class Remains:
    """Some tasks and runs that removed jobs have left."""

    job_ids: list[int]
    task_ids: list[int] = field(default_factory=list)
    runs: list[tuple[int, int]] = field(default_factory=list)
    """(task, epoch) of the runs of these tasks: those that ended, and that of the current epoch in the task's row."""


@dataclass(slots=True)
class Removed:
    """The number of rows that were deleted."""

    jobs: int = 0
    tasks: int = 0
    runs: int = 0
    others: int = 0
    """Edges and groups."""

    @property
    def rows(self) -> int:
        return self.jobs + self.tasks + self.runs + self.others


async def look_for_remains(session: Session) -> Remains | None:
    """Return what to delete next; None if `gone_jobs` is empty."""
    chosen = select(gone_jobs.c.job_id).order_by(gone_jobs.c.job_id).limit(JOBS_AT_ONCE)
    ids = [row.job_id for row in await session.rows(chosen)]
    if not ids:
        return None
    mine = select(tasks.c.id, tasks.c.epoch).where(session.any_of(tasks.c.job_id, ids)).limit(STEP)
    found = await session.rows(mine)
    task_ids = sorted(row.id for row in found)
    return Remains(ids, task_ids, sorted({*await runs_of(session, task_ids), *map(tuple, found)}))


async def runs_of(session: Session, task_ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the (task, epoch) of the ended runs of these tasks."""
    if not task_ids:
        return []
    chosen = select(runs.c.task_id, runs.c.epoch).where(session.any_of(runs.c.task_id, sorted(task_ids)))
    return [(row.task_id, row.epoch) for row in await session.rows(chosen)]


async def remove_remains(session: Session, remains: Remains) -> Removed:
    """Delete one step's worth of rows of these jobs: edges first, then the given tasks, then groups, then `gone_jobs`.

    Jobs that another transaction is removing are skipped.
    """
    mine = select(gone_jobs.c.job_id).where(session.any_of(gone_jobs.c.job_id, remains.job_ids))
    ids = [row.job_id for row in await session.rows(mine.with_for_update(skip_locked=True))]
    if not ids:
        return Removed()
    if edges := await _remove_edges(session, ids):
        return Removed(others=edges)
    if remains.task_ids:
        return await _remove_tasks(session, ids, remains.task_ids)
    if found := await _remove_groups(session, ids):
        return Removed(others=found)
    return Removed(jobs=await session.run(delete(gone_jobs).where(session.any_of(gone_jobs.c.job_id, ids))))


async def _remove_edges(session: Session, job_ids: Sequence[int]) -> int:
    ends = (dependencies.c.previous_id, dependencies.c.next_id)
    found = await session.rows(select(*ends).where(session.any_of(dependencies.c.job_id, job_ids)).limit(STEP))
    for batch in in_batches([tuple(row) for row in found]):
        first = session.any_of(ends[0], sorted({previous for previous, _ in batch}))  # lets MariaDB use an index
        await session.run(delete(dependencies).where(first, tuple_(*ends).in_(batch)))
    return len(found)


async def _remove_tasks(session: Session, job_ids: Sequence[int], task_ids: Sequence[int]) -> Removed:
    chosen = select(tasks.c.id).where(session.any_of(tasks.c.id, task_ids), session.any_of(tasks.c.job_id, job_ids))
    mine = sorted(row.id for row in await session.rows(chosen))
    if not mine:
        return Removed()
    await free_pins(session, mine)
    await session.run(delete(callbacks).where(session.any_of(callbacks.c.task_id, mine)))
    ended = await session.run(delete(runs).where(session.any_of(runs.c.task_id, mine)))
    return Removed(tasks=await session.run(delete(tasks).where(session.any_of(tasks.c.id, mine))), runs=ended)


async def _remove_groups(session: Session, job_ids: Sequence[int]) -> int:
    found = await session.rows(select(groups.c.id).where(session.any_of(groups.c.job_id, job_ids)).limit(STEP))
    ids = sorted(row.id for row in found)
    return await session.run(delete(groups).where(session.any_of(groups.c.id, ids))) if ids else 0


# ---------------------------------------------------------------- queries


async def count_of(session: Session, job_ids: Sequence[int]) -> tuple[list[int], int]:
    """Return the tasks of these jobs and of all `gone_jobs`, and the number of their runs."""
    left = [row.job_id for row in await session.rows(select(gone_jobs.c.job_id))]
    of_these = session.any_of(tasks.c.job_id, sorted({*job_ids, *left}))
    found = sorted(row.id for row in await session.rows(select(tasks.c.id).where(of_these)))
    both = runs.join(tasks, tasks.c.id == runs.c.task_id)
    return found, int(await session.scalar(select(func.count()).select_from(both).where(of_these)))


async def ended_among(session: Session, task_ids: Sequence[int]) -> set[int]:
    """Return those of these tasks that have ended, or that have runs here but no row any more.

    A task with neither may belong to another database that writes logs into the same directory.
    """
    which = session.any_of(tasks.c.id, sorted(task_ids))
    known = {row.id: row.status for row in await session.rows(select(tasks.c.id, tasks.c.status).where(which))}
    ended = {task_id for task_id, status in known.items() if status in ENDED_TASK}
    return ended | {task_id for task_id, _ in await runs_of(session, [each for each in task_ids if each not in known])}
