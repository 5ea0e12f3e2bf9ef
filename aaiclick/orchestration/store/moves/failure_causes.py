"""The task whose failure keeps others from ever running, and the error messages that name it.

Ripples pass the cause on from wave to wave. It is looked up only where an old failure meets something new, as when a
graph grows or is cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select

from aaiclick.errors import UpstreamFailed
from aaiclick.orchestration.rules.graphs.graph import descendants
from aaiclick.orchestration.rules.states import FAILED_TASK, TaskStatus
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, tasks

SAID_MAX = 500
"""How many characters of an error are quoted in the errors of the tasks that it doomed."""

_AMISS = sorted({*FAILED_TASK, TaskStatus.CANCELLED})


async def find_causes(session: Session, job_id: int, failed: Mapping[int, int]) -> dict[int, int]:
    """Return the task that caused the failure of each node; `failed` gives the task or group before it that failed.

    For a group without a failed task inside, the cause is the group itself.
    """
    before = sorted(set(failed.values()))
    if not before:
        return {}
    known = (session.any_of(tasks.c.id, before), tasks.c.job_id == job_id)
    causes = {
        row.id: row.cause_id or row.id for row in await session.rows(select(tasks.c.id, tasks.c.cause_id).where(*known))
    }
    left = [node for node in before if node not in causes]
    if left:
        around = select(groups.c.id, groups.c.parent_group_id).where(groups.c.job_id == job_id)
        parents = {row.id: row.parent_group_id for row in await session.rows(around)}
        for group in left:
            causes[group] = await _find_inside(session, descendants(parents, [group])) or group
    return {node: causes[previous] for node, previous in failed.items()}


async def _find_inside(session: Session, inside: Iterable[int]) -> int | None:
    """Return the cause of the first failure in these groups; None if nothing in them failed."""
    which = (session.any_of(tasks.c.group_id, sorted(inside)), tasks.c.status.in_(_AMISS))
    first = select(tasks.c.id, tasks.c.cause_id).where(*which).order_by(tasks.c.completed_at, tasks.c.id).limit(1)
    row = await session.first(first)
    return None if row is None else row.cause_id or row.id


async def find_causes_before(session: Session, nodes: Iterable[int]) -> dict[int, int]:
    """Return the cause for each of these nodes from a failure among its inputs; the node itself if none failed."""
    causes: dict[int, int] = {}
    for node in nodes:
        edges = dependencies.c.next_id == node
        task = select(tasks.c.id, tasks.c.job_id, tasks.c.cause_id).join(
            dependencies, dependencies.c.previous_id == tasks.c.id
        )
        row = await session.first(task.where(edges, tasks.c.status.in_(_AMISS)).limit(1))
        if row is not None:
            causes[node] = row.cause_id or row.id
            continue
        group = select(groups.c.id, groups.c.job_id).join(dependencies, dependencies.c.previous_id == groups.c.id)
        found = await session.first(group.where(edges, groups.c.failed_count > 0).limit(1))
        if found is not None:
            causes |= await find_causes(session, found.job_id, {node: found.id})
    return {node: causes.get(node, node) for node in nodes}


async def explain(session: Session, causes: Iterable[int]) -> dict[int, str]:
    """Say in words what became of each of these tasks."""
    facts = (tasks.c.id, tasks.c.name, tasks.c.status, tasks.c.error)
    found = await session.rows(select(*facts).where(session.any_of(tasks.c.id, sorted(set(causes)))))
    said = {row.id: _said(row) for row in found}
    return {cause: said.get(cause, f"what it waits for ({cause}) will never complete") for cause in causes}


def _said(row: Row[Any]) -> str:
    words = f"task {row.name!r} ({row.id})"
    if row.status == TaskStatus.CANCELLED:
        return f"{words} was cancelled"
    error = (row.error or "").partition("\n")[0]
    if len(error) > SAID_MAX:
        error = f"{error[:SAID_MAX]}…"
    return f"{words} failed" + (f": {error}" if error else "")


def error_of(cause: str, name: str | None = None) -> str:
    """Return the error of a task that never ran; with its name, the error of its job."""
    task = "The task" if name is None else f"Task {name!r}"
    return f"{UpstreamFailed.__name__}: {UpstreamFailed(task=task, cause=cause)}"


async def first_errors(session: Session, doomed: Sequence[Row[Any]], said: Mapping[int, str]) -> dict[int, str]:
    """Return, per job, the error for the first critical task of these; `said` says in words what caused each."""
    first: dict[int, int] = {}
    for row in doomed:
        if row.critical:
            first.setdefault(row.job_id, row.id)
    if not first:
        return {}
    which = session.any_of(tasks.c.id, sorted(first.values()))
    names = {row.id: row.name for row in await session.rows(select(tasks.c.id, tasks.c.name).where(which))}
    return {job_id: error_of(said[task], names[task]) for job_id, task in first.items()}


async def error_left(session: Session, job_id: int) -> str | None:
    """Return the error of the first critical task of a job that failed, or was doomed; None if there is none."""
    which = (tasks.c.job_id == job_id, tasks.c.status.in_(sorted(FAILED_TASK)), tasks.c.critical.is_(True))
    facts = (tasks.c.name, tasks.c.status, tasks.c.error, tasks.c.cause_id)
    first = select(*facts).where(*which).order_by(tasks.c.completed_at, tasks.c.status, tasks.c.id).limit(1)
    row = await session.first(first)
    if row is None:
        return None
    if row.status == TaskStatus.FAILED or row.cause_id is None:
        return row.error  # type: ignore[no-any-return]
    return error_of((await explain(session, [row.cause_id]))[row.cause_id], row.name)
