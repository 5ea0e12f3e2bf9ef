"""Lists of tasks over all jobs, newest first, in pages whose cost is bounded whatever is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, select, tuple_

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.rules.lanes import KnownLanes
from aaiclick.orchestration.rules.placement import misses
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.rules.validation import like_pattern
from aaiclick.orchestration.store.definitions.fleet_tables import lanes, nodes
from aaiclick.orchestration.store.reading.nodes import open_nodes
from aaiclick.orchestration.store.reading.ready_lanes import find_lanes
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, ready, tasks, workers

SCAN_MAX = 20_000
"""Tasks that one page looks through at most: it may have fewer than were asked for, and yet a next page."""

NODES_MAX = 10_000
_ALL = tuple(tasks.columns)


class TaskChoice(NamedTuple):
    """Which tasks."""

    status: TaskStatus | None = None
    name_like: str | None = None
    node: str | None = None
    lane: int | None = None


class Found(NamedTuple):
    """A page of tasks; `next` is what the page after it begins behind, None if there is none."""

    tasks: list[Task]
    next: int | None


async def list_tasks(session: Session, choice: TaskChoice, before: int | None, limit: int) -> Found:
    """Return tasks, newest first; `before` is the `next` of the page before.

    `node`: of workers of the node of this name, now or at their last attempt.
    """
    window = select(tasks.c.id).order_by(tasks.c.id.desc())
    if before is not None:
        window = window.where(tasks.c.id < before)
    last = await session.scalar(window.limit(1).offset(SCAN_MAX - 1))
    chosen = select(*_ALL).where(*_conditions(choice)).order_by(tasks.c.id.desc()).limit(limit)
    if before is not None:
        chosen = chosen.where(tasks.c.id < before)
    if last is not None:
        chosen = chosen.where(tasks.c.id >= last)
    found = [Task.from_row(row) for row in await session.rows(chosen)]
    return Found(found, found[-1].id if len(found) == limit else last)


def _conditions(choice: TaskChoice) -> Iterable[ColumnElement[bool]]:
    if choice.status is not None:
        yield tasks.c.status == choice.status
    if choice.name_like is not None:
        pattern, escape = like_pattern(choice.name_like)
        yield tasks.c.name.like(pattern, escape=escape)
    if choice.lane is not None:
        yield tasks.c.lane == choice.lane
    if choice.node is not None:
        theirs = select(workers.c.id).join(nodes, nodes.c.id == workers.c.node_id).where(nodes.c.name == choice.node)
        yield tasks.c.worker_id.in_(theirs)


async def list_blocked(
    session: Session, known: KnownLanes, choice: TaskChoice, before: int | None, limit: int
) -> Found:
    """Return ready tasks that no node may run which is open and has a live worker, in the order of their queue."""
    blocked = await _blocked_lanes(session, known)
    if choice.lane is not None:
        blocked = [lane for lane in blocked if lane == choice.lane]
    key = (ready.c.lane, ready.c.rank, ready.c.job_id, ready.c.task_id)
    queue = select(ready.c.task_id).where(ready.c.reserved_for == 0, ready.c.lane.in_(blocked)).order_by(*key)
    if before is not None:
        place = await session.first(select(tasks.c.lane, tasks.c.priority, tasks.c.job_id).where(tasks.c.id == before))
        if place is None:
            return Found([], None)
        queue = queue.where(tuple_(*key) > tuple_(place.lane, -place.priority, place.job_id, before))
    ids = [row.task_id for row in await session.rows(queue.limit(limit))] if blocked else []
    if not ids:
        return Found([], None)
    chosen = select(*_ALL).where(session.any_of(tasks.c.id, ids), *_conditions(choice._replace(lane=None)))
    place_of = {task_id: number for number, task_id in enumerate(ids)}
    found = sorted(await session.rows(chosen), key=lambda row: place_of[row.id])
    return Found([Task.from_row(row) for row in found], ids[-1] if len(ids) == limit else None)


async def _blocked_lanes(session: Session, known: KnownLanes) -> list[int]:
    there = await open_nodes(session, NODES_MAX)
    waiting = [head.lane for head in await find_lanes(session, 0)]
    for row in await session.rows(select(lanes.c.id, lanes.c.needs).where(session.any_of(lanes.c.id, waiting))):
        if row.id not in known.needs:
            known.learn(row.id, row.needs)
    return [lane for lane in waiting if lane in known.needs and all(misses(known.needs[lane], node) for node in there)]


async def count_by_node(session: Session, entrypoint: str) -> dict[int, int]:
    """Return how many tasks of a function the workers of each node have claimed."""
    rows = await session.rows(
        select(workers.c.node_id, func.count().label("number"))
        .select_from(claims)
        .join(workers, workers.c.id == claims.c.worker_id)
        .join(tasks, tasks.c.id == claims.c.task_id)
        .where(workers.c.node_id.is_not(None), tasks.c.entrypoint == entrypoint)
        .group_by(workers.c.node_id)
    )
    return {row.node_id: row.number for row in rows}
