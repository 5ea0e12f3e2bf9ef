"""Reading nodes, with what is known of their workers that have a session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, func, select

from aaiclick.orchestration.models.node_info import NodeInfo
from aaiclick.orchestration.rules.nodes import NodeState, NodeStatus, status_of
from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, workers


async def get_node(session: Session, name: str) -> NodeInfo | None:
    """Return the node of this name."""
    return next(iter(await _read(session, select(nodes).where(nodes.c.name == name))), None)


async def node_of_worker(session: Session, worker_id: int) -> NodeInfo | None:
    """Return what the node of a worker has, without its other workers; None if it has none."""
    mine = select(nodes).join(workers, workers.c.node_id == nodes.c.id).where(workers.c.id == worker_id)
    row = await session.first(mine)
    return None if row is None else NodeInfo.from_row(row)


async def list_nodes(
    session: Session,
    *,
    state: NodeState | None = None,
    pool: str | None = None,
    after: str | None = None,
    limit: int | None = None,
) -> list[NodeInfo]:
    """Return nodes in the order of their names; `after` is the last name of the page before."""
    choice = select(nodes).order_by(nodes.c.name).limit(limit)
    if state is not None:
        choice = choice.where(nodes.c.state == state)
    if pool is not None:
        choice = choice.where(nodes.c.pool == pool)
    if after is not None:
        choice = choice.where(nodes.c.name > after)
    return await _read(session, choice)


async def open_nodes(session: Session, limit: int) -> list[NodeInfo]:
    """Return the nodes that are open and have a live worker."""
    found = await list_nodes(session, state=NodeState.OPEN, limit=limit)
    return [node for node in found if node.status != NodeStatus.DEAD]


async def _read(session: Session, choice: Select[Any]) -> list[NodeInfo]:
    rows = await session.rows(choice)
    known = await _of_workers(session, [row.id for row in rows])
    now = await session.now()
    return [_node(row, known.get(row.id, ()), now) for row in rows]


async def _of_workers(session: Session, ids: Sequence[int]) -> dict[int, list[Row[Any]]]:
    """Return the workers of these nodes whose sessions are not ended, with the number of their claims."""
    if not ids:
        return {}
    columns = (workers.c.node_id, workers.c.last_heartbeat, workers.c.expires_at, workers.c.concurrency)
    there = (session.any_of(workers.c.node_id, ids), workers.c.status != WorkerStatus.STOPPED)
    found: dict[int, list[Row[Any]]] = {}
    held = func.count(claims.c.task_id).label("held")
    chosen = select(workers.c.id, *columns, held).outerjoin(claims, claims.c.worker_id == workers.c.id)
    for row in await session.rows(chosen.where(*there).group_by(workers.c.id, *columns)):
        found.setdefault(row.node_id, []).append(row)
    return found


def _node(row: Row[Any], there: Sequence[Row[Any]], now: datetime) -> NodeInfo:
    newest = max(there, key=lambda worker: worker.last_heartbeat, default=None)
    beat = None if newest is None else newest.last_heartbeat
    return NodeInfo.from_row(
        row,
        status=status_of(now, beat, None if newest is None else newest.expires_at),
        last_heartbeat=beat,
        workers=len(there),
        slots=sum(worker.concurrency for worker in there),
        running=sum(worker.held for worker in there),
    )
