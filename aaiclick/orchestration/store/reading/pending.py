"""The facts that explain why a task does not run; they are read by key, and the number of rows is bounded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Subquery, func, or_, select

from aaiclick.orchestration.models.node_info import NodeInfo
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.rules.node_standings import NodeStanding, standings
from aaiclick.orchestration.rules.pending import Blocker, Facts, Fleet, Holder
from aaiclick.orchestration.rules.resources import unit_names
from aaiclick.orchestration.rules.states import COMPLETE_TASK, ENDED_TASK, JobStatus, TaskStatus, WorkerStatus
from aaiclick.orchestration.rules.triggers import ONE, When
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.reading.health import leader, takes_tasks
from aaiclick.orchestration.store.reading.nodes import list_nodes
from aaiclick.orchestration.store.reading.resources import list_units
from aaiclick.orchestration.store.reading.task_list import count_by_node
from aaiclick.orchestration.store.resources.grants import could_grant
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, dependencies, groups, jobs, ready, tasks, workers

LISTED_MAX = 10
"""Blockers that are listed; the others are only counted."""

EDGES_MAX = 10_000
"""Dependencies that are read at most."""

NODES_MAX = 1_000
"""Nodes of which it is told what they lack."""

UNITS_MAX = 100
"""Units of resources that are told of."""

BEFORE_MAX = 1_000
"""How far the tasks before this one in the queue are counted."""

_FAILED = sorted(ENDED_TASK - COMPLETE_TASK)
_LIVE = [status for status in WorkerStatus if status != WorkerStatus.STOPPED]
_TASK = (
    "id",
    "job_id",
    "name",
    "status",
    "error",
    "group_id",
    "gated",
    "unmet_count",
    "run_after",
    "trigger_rule",
    "awaited_count",
)
_MORE = ("entrypoint", "reserved_for", "lane", "priority", "worker_id", "claimed_at")


@dataclass(frozen=True, slots=True)
class _Gate:
    """A group that the task is in, directly or through other groups."""

    id: int
    name: str
    unmet_count: int
    parent_id: int | None
    when: When


async def read_facts(session: Session, task_id: int) -> Facts | None:
    """Return everything that could hold the task back; None if there is no such task."""
    columns = [tasks.c[name] for name in (*_TASK, *_MORE)]
    job_status = jobs.c.status.label("job_status")
    found = select(*columns, job_status).join(jobs, jobs.c.id == tasks.c.job_id).where(tasks.c.id == task_id)
    row = await session.first(found)
    if row is None:
        return None
    now = await session.now()
    blockers, more = await _read_blockers(session, row)
    is_free = row.status == TaskStatus.PENDING and not row.unmet_count and row.run_after is None
    place = await _find_in_queue(session, row) if is_free else None
    lead = await leader(session)
    needs = await _read_needs(session, row.lane) if place is not None else {}
    nodes = await list_nodes(session, limit=NODES_MAX) if needs else []
    standing = await _read_standings(session, needs, row.entrypoint, nodes)
    open_nodes = [node.id for node, each in zip(nodes, standing, strict=True) if not each.missing]
    wanted = {} if row.reserved_for else needs.get("resources", {})
    return Facts(
        task_id=row.id,
        job_id=row.job_id,
        name=row.name,
        status=TaskStatus(row.status),
        job_status=JobStatus(row.job_status),
        now=now,
        when=When(row.trigger_rule),
        error=row.error,
        unmet=row.unmet_count > 0,
        blockers=blockers,
        more=more,
        is_cut=more > 0 and not blockers and await _has_many_edges(session, row.id),
        run_after=row.run_after,
        in_queue=place is not None,
        before=place or 0,
        before_max=BEFORE_MAX,
        holder=await _read_worker(session, row.worker_id, now),
        claimed_at=row.claimed_at,
        kept_by=await _read_worker(session, row.reserved_for or None, now),
        fleet=await _read_fleet(session, now) if place is not None else Fleet(),
        has_leader=lead is not None and lead.left_s > 0,
        needs=needs,
        nodes=standing,
        resources=await list_units(session, names=unit_names(wanted), limit=UNITS_MAX) if wanted else (),
        is_short=bool(wanted) and not await could_grant(session, open_nodes, wanted),
    )


async def _read_needs(session: Session, lane: int) -> dict[str, Any]:
    row = await session.first(select(lanes.c.needs).where(lanes.c.id == lane)) if lane != PLAIN else None
    return {} if row is None else dict(json.loads(row.needs))


async def _read_standings(
    session: Session, needs: Mapping[str, Any], entrypoint: str, nodes: Sequence[NodeInfo]
) -> list[NodeStanding]:
    running = await count_by_node(session, entrypoint) if "max_parallel" in needs else {}
    return standings(needs, nodes, running)


# ---------------------------------------------------------------- dependencies


async def _read_blockers(session: Session, task: Row[Any]) -> tuple[list[Blocker], int]:
    """Return the first open predecessors of a pending task, and how many more there are.

    For a task that is UPSTREAM_FAILED, return the predecessors that failed.
    """
    if task.status == TaskStatus.UPSTREAM_FAILED:
        gates = await _read_gates(session, task.group_id)
        return await _find_failed(session, task.id, gates), 0
    if task.status != TaskStatus.PENDING or not task.unmet_count:
        return [], 0
    gates = await _read_gates(session, task.group_id) if task.gated else []
    closed = [gate for gate in gates if gate.unmet_count]
    when = When(task.trigger_rule)
    found = await _find_open(session, task.id, when, closed)
    own = max(task.awaited_count, 0) if when in ONE else task.unmet_count - bool(task.gated)
    return found, max(0, own + _count_own(closed) - len(found))


async def _read_gates(session: Session, group_id: int | None) -> list[_Gate]:
    """Return the groups that contain a task, innermost first."""
    found: list[_Gate] = []
    while group_id is not None:
        row = await session.first(select(groups).where(groups.c.id == group_id))
        if row is None:
            break
        found.append(_Gate(row.id, row.name, row.unmet_count, row.parent_group_id, When(row.trigger_rule)))
        group_id = row.parent_group_id
    return found


def _count_own(closed: Sequence[_Gate]) -> int:
    """Return how many predecessors these groups wait for.

    The `unmet_count` of a group includes one for a closed group around it, which is subtracted.
    """
    inner = {gate.id for gate in closed}
    return sum(gate.unmet_count - (gate.parent_id in inner) for gate in closed)


async def _find_open(session: Session, task_id: int, when: When, closed: Sequence[_Gate]) -> list[Blocker]:
    """Return the predecessors of the task and of its closed groups that are still open.

    Under `all_completed` a predecessor is open until it completes; under the other rules, until it ends.
    """
    rules = {task_id: when} | {gate.id: gate.when for gate in closed}
    names: dict[int, str | None] = {task_id: None} | {gate.id: gate.name for gate in closed}
    plain = {node: name for node, name in names.items() if rules[node] is When.ALL_COMPLETED}
    found = await _find(session, plain, tasks.c.status.not_in(sorted(COMPLETE_TASK)), groups.c.open_count > 0)
    if len(plain) < len(names):
        ruled = {node: name for node, name in names.items() if node not in plain}
        found += await _find(session, ruled, tasks.c.status.not_in(sorted(ENDED_TASK)), groups.c.unended_count > 0)
    return sorted(found, key=lambda blocker: blocker.id)[:LISTED_MAX]


async def _find_failed(session: Session, task_id: int, gates: Sequence[_Gate]) -> list[Blocker]:
    names: dict[int, str | None] = {task_id: None} | {gate.id: gate.name for gate in gates}
    return await _find(session, names, tasks.c.status.in_(_FAILED), groups.c.failed_count > 0)


async def _find(
    session: Session,
    names: Mapping[int, str | None],
    of_tasks: ColumnElement[bool],
    of_groups: ColumnElement[bool],
) -> list[Blocker]:
    """Return up to LISTED_MAX predecessors that meet these conditions, ordered by id.

    `names` maps the ids of the task and of the groups around it to the `gate` of their blockers: the group's name, None
    for the task itself.
    """
    if not names:
        return []
    edges = _edges(session, names)
    before = await session.rows(_previous(edges, tasks, tasks.c.status).where(of_tasks))
    around = await session.rows(_previous(edges, groups, groups.c.open_count, groups.c.failed_count).where(of_groups))
    found = [Blocker(row.id, "task", row.name, row.status, gate=names[row.next_id]) for row in before]
    found += [
        Blocker(row.id, "group", row.name, _standing(row), row.open_count, gate=names[row.next_id]) for row in around
    ]
    return sorted(found, key=lambda blocker: blocker.id)[:LISTED_MAX]


def _edges(session: Session, nodes: Iterable[int]) -> Subquery:
    return (
        select(dependencies.c.previous_id, dependencies.c.next_id)
        .where(session.any_of(dependencies.c.next_id, sorted(nodes)), dependencies.c.met.is_(False))
        .limit(EDGES_MAX)
        .subquery()
    )


async def _has_many_edges(session: Session, task_id: int) -> bool:
    """Return whether the task has more dependencies than are read.

    Those of the groups around it are not counted, since groups rarely have so many.
    """
    return int(await session.scalar(select(func.count()).select_from(_edges(session, [task_id])))) >= EDGES_MAX


def _previous(edges: Subquery, table: Any, *columns: ColumnElement[Any]) -> Select[Any]:
    chosen = select(table.c.id, table.c.name, *columns, edges.c.next_id).join(edges, edges.c.previous_id == table.c.id)
    return chosen.order_by(table.c.id, edges.c.next_id).limit(LISTED_MAX)


def _standing(group: Row[Any]) -> str:
    return "failed" if group.failed_count else "open"


# ---------------------------------------------------------------- the queue and the workers


async def _find_in_queue(session: Session, task: Row[Any]) -> int | None:
    """Return how many tasks of its lane are before this one, at most BEFORE_MAX; None if it is not in the queue."""
    lane = (ready.c.reserved_for == task.reserved_for, ready.c.lane == task.lane)
    place = (ready.c.rank == -task.priority, ready.c.job_id == task.job_id, ready.c.task_id == task.id)
    if await session.first(select(ready.c.task_id).where(*lane, *place)) is None:
        return None
    front = (
        select(ready.c.rank, ready.c.job_id, ready.c.task_id)
        .where(*lane)
        .order_by(ready.c.reserved_for, ready.c.lane, ready.c.rank, ready.c.job_id, ready.c.task_id)
        .limit(BEFORE_MAX)
    )
    own = (-task.priority, task.job_id, task.id)
    return sum(tuple(row) < own for row in await session.rows(front))


async def _read_worker(session: Session, worker_id: int | None, now: datetime) -> Holder | None:
    if worker_id is None:
        return None
    row = await session.first(select(workers).where(workers.c.id == worker_id))
    if row is None:
        return Holder(worker_id)
    is_live = row.status != WorkerStatus.STOPPED and row.expires_at > now
    age_s = max(0.0, (now - row.last_heartbeat).total_seconds())
    owed_s = row.unreported_s + age_s if row.unreported_s else 0.0
    return Holder(row.id, row.name, row.hostname, row.pid, is_live, owed_s)


async def _read_fleet(session: Session, now: datetime) -> Fleet:
    """Return the number of live workers that take tasks, of their slots, and of the slots that are taken."""
    held = func.count(claims.c.task_id).label("held")
    rows = await session.rows(
        select(workers.c.id, workers.c.status, workers.c.cordoned, workers.c.concurrency, held)
        .outerjoin(claims, claims.c.worker_id == workers.c.id)
        .where(takes_tasks(), or_(*(workers.c.status == status for status in _LIVE)), workers.c.expires_at > now)
        .group_by(workers.c.id, workers.c.status, workers.c.cordoned, workers.c.concurrency)
    )
    active = [row for row in rows if row.status != WorkerStatus.STOPPING and not row.cordoned]
    return Fleet(
        live=len(rows),
        draining=len(rows) - len(active),
        full=sum(row.concurrency <= row.held for row in active),
        slots=sum(row.concurrency for row in active),
        taken=sum(min(row.concurrency, row.held) for row in active),
    )
