"""The graph of a job for display: without arguments and results of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, literal, select, tuple_

from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store.definitions.column_types import Id
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, jobs, tasks

SHOWN = (
    tasks.c.id,
    tasks.c.name,
    tasks.c.status,
    tasks.c.group_id,
    tasks.c.parent_task_id,
    tasks.c.attempt,
    tasks.c.started_at,
    tasks.c.completed_at,
    tasks.c.trigger_rule.label("when"),
)


class JobGraph(NamedTuple):
    """The rows of tasks, groups and dependencies of one job."""

    tasks: Sequence[Row[Any]]
    groups: Sequence[Row[Any]]
    dependencies: Sequence[Row[Any]]


async def read_graph(session: Session, job_id: int, limit: int | None = None) -> JobGraph | None:
    """Return the graph of a job, with at most `limit` rows of each kind; None if there is no such job."""
    if await session.first(select(jobs.c.id).where(jobs.c.id == job_id)) is None:
        return None
    edges = (
        dependencies.c.previous_id,
        dependencies.c.previous_type,
        dependencies.c.next_id,
        dependencies.c.next_type,
    )
    return JobGraph(
        await session.rows(select(*SHOWN).where(tasks.c.job_id == job_id).order_by(tasks.c.id).limit(limit)),
        await session.rows(
            select(groups.c.id, groups.c.name, groups.c.parent_group_id, groups.c.trigger_rule.label("when"))
            .where(groups.c.job_id == job_id)
            .order_by(groups.c.id)
            .limit(limit)
        ),
        await session.rows(select(*edges).where(dependencies.c.job_id == job_id).limit(limit)),
    )


async def list_task_rows(
    session: Session, job_id: int, status: TaskStatus | None, after: int, limit: int
) -> Sequence[Row[Any]]:
    """Return up to `limit` tasks of a job with an id above `after`, ordered by id, which is the order of creation."""
    choice = select(*SHOWN).where(*_after(session, job_id, after)).order_by(tasks.c.job_id, tasks.c.id).limit(limit)
    return await session.rows(choice if status is None else choice.where(tasks.c.status == status))


def _after(session: Session, job_id: int, after: int) -> Sequence[ColumnElement[bool]]:
    if not session.dialect.leaves_its_index:
        return tasks.c.job_id == job_id, tasks.c.id > after
    pair = tuple_(literal(job_id, Id), literal(after, Id))
    return tasks.c.job_id.between(job_id, job_id), tuple_(tasks.c.job_id, tasks.c.id) > pair
