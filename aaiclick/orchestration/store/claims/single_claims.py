"""Claims of single tasks, chosen by whoever asks for them; and what is known of them as leases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import or_, select, update

from aaiclick.errors import NotFound
from aaiclick.orchestration.models import Claim, Task, WorkerStatus
from aaiclick.orchestration.rules.states import LIVE_TASK, TaskStatus
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.definitions.fleet_tables import lanes, nodes
from aaiclick.orchestration.store.moves.queue import leave_queue, make_ready
from aaiclick.orchestration.store.resources.grants import grant, plan_grants
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, ready, tasks, workers
from aaiclick.orchestration.store.transitions import lock_tasks


async def claim_task(session: Session, *, worker_id: int, task_id: int, installation: str) -> Claim | None:
    """Claim this task if it is ready and reserved for nobody; return None if it is not, or was claimed before.

    None is also returned if resources that it needs are not free. It is reserved for the worker, claimed as any other,
    and reserved for nobody again: in one transaction. Raise SessionOver if the worker's session is not live.
    """
    mine = tasks.c.id == task_id
    needs = await session.scalar(select(lanes.c.needs).join(tasks, tasks.c.lane == lanes.c.id).where(mine))
    resources = {} if needs is None else parsed(needs).get("resources", {})
    planned = await plan_grants(session, worker_id, resources, 1) if resources else []
    if resources and not planned:
        return None
    await leave_queue(session, mine)
    rows = await lock_tasks(session, [task_id])
    await leave_queue(session, mine)
    if not rows or rows[0].status != TaskStatus.PENDING or rows[0].reserved_for:
        await make_ready(session, [task_id])
        return None
    lane: int = await session.scalar(select(tasks.c.lane).where(mine))
    await session.run(update(tasks).where(mine).values(reserved_for=worker_id))
    await make_ready(session, [task_id])
    asked: dict[str, Any] = {"worker_id": worker_id, "reserved_for": worker_id, "lane": lane}
    taken = await claim_tasks(
        session, **asked, limit=1, after=None, started=set(), installation=installation, begins=1, alone=False
    )
    await session.run(update(tasks).where(mine).values(reserved_for=0))
    if resources:
        taken = await grant(session, taken, planned, 0)
    return taken[0] if taken else None


class Held(NamedTuple):
    """What is known of a task's claim, and of who had it last."""

    epoch: int
    worker_id: int | None
    node: str | None
    claimed_at: datetime | None
    expires_at: datetime | None
    """The end of the session of its worker; None if the task is not claimed."""
    needs: str | None
    """What the task needs of its worker, as JSON."""


async def read_held(session: Session, task_id: int) -> Held:
    """Return what is known of a task's claim. Raise NotFound if there is no such task."""
    facts = (tasks.c.epoch, tasks.c.worker_id, tasks.c.status, tasks.c.claimed_at)
    row: Any = await session.first(
        select(*facts, nodes.c.name, workers.c.expires_at, lanes.c.needs)
        .outerjoin(workers, workers.c.id == tasks.c.worker_id)
        .outerjoin(nodes, nodes.c.id == workers.c.node_id)
        .outerjoin(lanes, lanes.c.id == tasks.c.lane)
        .where(tasks.c.id == task_id)
    )
    if row is None:
        raise NotFound(what="task", field="id", value=task_id, hint="")
    expires_at = row.expires_at if row.status in LIVE_TASK else None
    return Held(row.epoch, row.worker_id, row.name, row.claimed_at, expires_at, row.needs)


async def claims_of_nobody(session: Session) -> list[int]:
    """Return the tasks that are claimed by workers without a session."""
    over = or_(workers.c.id.is_(None), workers.c.status == WorkerStatus.STOPPED)
    chosen = select(claims.c.task_id).outerjoin(workers, workers.c.id == claims.c.worker_id).where(over)
    return sorted(row.task_id for row in await session.rows(chosen))


async def ready_tasks(session: Session, limit: int) -> list[Task]:
    """Return ready tasks that are reserved for nobody, in the order of their queue."""
    order = (ready.c.rank, ready.c.job_id, ready.c.task_id)
    chosen = select(*tasks.columns).join(ready, ready.c.task_id == tasks.c.id).where(ready.c.reserved_for == 0)
    return [Task.from_row(row) for row in await session.rows(chosen.order_by(*order).limit(limit))]


def parsed(needs: str) -> Mapping[str, Any]:
    """Return the needs of a lane, from their canonical text."""
    found: Mapping[str, Any] = json.loads(needs)
    return found
