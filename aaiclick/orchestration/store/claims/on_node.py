"""Counting what runs on a node, so that no more is claimed there than a task allows."""

from __future__ import annotations

from sqlalchemy import Select, func, select

from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, tasks, workers


async def count_on_node(session: Session, worker_id: int, entrypoint: str) -> int | None:
    """Lock the node of a worker, and return how many tasks of a function its workers have claimed; None: no node.

    Whoever claims such a task for the node afterwards does so under this lock, so the count stays true until then.
    """
    mine = select(workers.c.node_id).where(workers.c.id == worker_id)
    node_id = await session.scalar(mine)
    if node_id is None:
        return None
    locked = await session.first(select(nodes.c.id).where(nodes.c.id == node_id).with_for_update())
    if locked is None:  # it was removed
        return None
    return int(await session.scalar(_running(node_id, entrypoint)))


def _running(node_id: int, entrypoint: str) -> Select[int]:
    """Return the number of claims of a function on a node; claims are read by worker, and tasks by id."""
    return (
        select(func.count())
        .select_from(workers)
        .join(claims, claims.c.worker_id == workers.c.id)
        .join(tasks, tasks.c.id == claims.c.task_id)
        .where(workers.c.node_id == node_id, tasks.c.entrypoint == entrypoint)
    )
