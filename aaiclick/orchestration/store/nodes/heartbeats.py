"""The sessions of one node, for whoever speaks of nodes and not of workers."""

from __future__ import annotations

from sqlalchemy import select, update

from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import workers


async def sessions_of(session: Session, name: str) -> list[int]:
    """Return the workers of a node whose sessions are not ended, the newest first."""
    mine = (nodes.c.name == name, workers.c.status != WorkerStatus.STOPPED)
    chosen = select(workers.c.id).join(nodes, nodes.c.id == workers.c.node_id).where(*mine)
    return [row.id for row in await session.rows(chosen.order_by(workers.c.id.desc()))]


async def expire_node(session: Session, name: str) -> int:
    """Let the sessions of a node be past their end, as of now; return their number.

    A heartbeat that comes before they are swept renews them, as after any silence.
    """
    ids = await sessions_of(session, name)
    live = (workers.c.id.in_(ids), workers.c.status != WorkerStatus.STOPPED)
    return await session.run(update(workers).where(*live).values(expires_at=session.dialect.now())) if ids else 0
