"""Queries for jobs, tasks, groups, runs, events and dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, Select, Table, func, or_, select

from aaiclick.ids import id_time
from aaiclick.orchestration.models import Group, Job, JobStatus, Run, Task
from aaiclick.orchestration.rules.validation import like_pattern
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, events, groups, jobs, runs, tasks


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
    session: Session,
    status: JobStatus | None,
    name_like: str | None,
    limit: int,
    offset: int,
    before: int | None = None,
) -> list[Job]:
    """Return jobs, newest first; `before` is the id of the last job on the previous page."""
    choice = _matching(select(jobs), status, name_like).order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
    choice = choice.limit(limit).offset(offset)
    if before is not None:
        choice = choice.where(*await older_than(session, jobs, jobs.c.created_at, before))
    return [Job.from_row(row) for row in await session.rows(choice)]


async def older_than(
    session: Session, table: Table, created_at: Column[Any], before: int
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions for rows that follow the row `before` in a list by creation, newest first.

    If that row is gone, the time is taken from its id. The first condition is implied by the second, and lets databases
    find the start in the index.
    """
    place = await session.scalar(select(created_at).where(table.c.id == before)) or id_time(before)
    return created_at <= place, or_(created_at < place, table.c.id < before)


async def count_jobs(session: Session, status: JobStatus | None, name_like: str | None) -> int:
    return int(await session.scalar(_matching(select(func.count()).select_from(jobs), status, name_like)))


async def get_task(session: Session, task_id: int) -> Task | None:
    row = await session.first(select(tasks).where(tasks.c.id == task_id))
    return None if row is None else Task.from_row(row)


async def get_tasks(session: Session, job_id: int) -> list[Task]:
    """Return all tasks of a job, ordered by id, which is the order of creation."""
    rows = await session.rows(select(tasks).where(tasks.c.job_id == job_id).order_by(tasks.c.id))
    return [Task.from_row(row) for row in rows]


async def get_groups(session: Session, job_id: int) -> list[Group]:
    """Return all groups of a job, ordered by id, which is the order of creation."""
    rows = await session.rows(select(groups).where(groups.c.job_id == job_id).order_by(groups.c.id))
    return [Group.from_row(row) for row in rows]


async def get_group_tasks(session: Session, group_id: int) -> list[Task]:
    rows = await session.rows(select(tasks).where(tasks.c.group_id == group_id).order_by(tasks.c.id))
    return [Task.from_row(row) for row in rows]


async def get_child_groups(session: Session, group_id: int) -> list[Group]:
    rows = await session.rows(select(groups).where(groups.c.parent_group_id == group_id).order_by(groups.c.id))
    return [Group.from_row(row) for row in rows]


async def find_stored(session: Session, ids: Sequence[int]) -> dict[int, int]:
    """Return the job of each of these tasks and groups that is stored."""
    found: dict[int, int] = {}
    for table in (tasks, groups):
        rows = await session.rows(select(table.c.id, table.c.job_id).where(session.any_of(table.c.id, sorted(ids))))
        found.update((row.id, row.job_id) for row in rows)
    return found


async def get_runs(session: Session, task_id: int) -> Sequence[Row[Any]]:
    shown = [runs.c[each.name] for each in fields(Run)]
    return await session.rows(select(*shown).where(runs.c.task_id == task_id).order_by(runs.c.epoch))


async def last_tracebacks(session: Session, task_ids: Sequence[int]) -> dict[int, str]:
    """Return the latest traceback of each of these tasks; tasks without one are left out."""
    if not task_ids:
        return {}
    left = (session.any_of(runs.c.task_id, sorted(task_ids)), runs.c.traceback.is_not(None))
    rows = await session.rows(select(runs.c.task_id, runs.c.traceback).where(*left).order_by(runs.c.epoch))
    return {row.task_id: row.traceback for row in rows}


async def get_events(session: Session, job_id: int) -> Sequence[Row[Any]]:
    return await session.rows(select(events).where(events.c.job_id == job_id).order_by(events.c.id))


async def get_dependencies(session: Session, job_id: int) -> Sequence[Row[Any]]:
    return await session.rows(select(dependencies).where(dependencies.c.job_id == job_id))


async def get_results(session: Session, task_ids: Sequence[int]) -> dict[int, tuple[str, str | None]]:
    """Return (status, stored result) of each of these tasks that is stored."""
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
