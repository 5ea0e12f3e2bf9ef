"""What operators do with nodes: close them for new claims, empty them, open them again, remove them."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import delete, select, update

from aaiclick.errors import Conflict
from aaiclick.orchestration.rules.naming.hints import ORDERS, READY
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.store.claims.recoveries import recover_claims_of
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.nodes.registration import lock_node
from aaiclick.orchestration.store.resources.units import forget_units
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import workers


async def set_state(session: Session, name: str, state: NodeState) -> NodeState | None:
    """Change the state of a node, and of its workers with it; return the state before, None if there is no such node.

    Workers of a node that drains are asked to leave, and go on leaving if it is opened again.
    """
    node = await lock_node(session, name)
    if node is None:
        return None
    await session.run(update(nodes).where(nodes.c.id == node.id).values(state=state))
    theirs = (workers.c.node_id == node.id, workers.c.status != WorkerStatus.STOPPED)
    values: dict[str, object] = {"cordoned": state != NodeState.OPEN}
    if state == NodeState.DRAINING:
        values["status"] = WorkerStatus.STOPPING
        session.hints.add(ORDERS)
    await session.run(update(workers).where(*theirs).values(values))
    if state == NodeState.OPEN:
        session.hints.add(READY)
    return NodeState(node.state)


class Removed(NamedTuple):
    """What a removal ended: sessions of workers, and claims that these held."""

    sessions: int
    claims: int


async def remove_node(session: Session, name: str, losses_max: int, *, force: bool = False) -> Removed | None:
    """Delete a node, end its sessions and free what its workers held; return None if there is no such node.

    A node with a live session is refused, unless `force` says that its machine is known to be gone: until its workers
    hear that their sessions are over, their bodies go on beside those that others begin.
    """
    node = await lock_node(session, name)
    if node is None:
        return None
    now = await session.now()
    rows = await session.rows(
        select(workers.c.id, workers.c.expires_at).where(
            workers.c.node_id == node.id, workers.c.status != WorkerStatus.STOPPED
        )
    )
    live = sum(row.expires_at > now for row in rows)
    if live and not force:
        cause = f"{live} of its workers are alive"
        raise Conflict(
            what=f"Node {name!r}", verb="removed", cause=cause, hint="Drain it first, or force it if it is gone."
        )
    ended = update(workers).where(workers.c.node_id == node.id, workers.c.status != WorkerStatus.STOPPED)
    sessions = await session.run(ended.values(status=WorkerStatus.STOPPED, expires_at=session.dialect.now()))
    mine = [row.id for row in await session.rows(select(workers.c.id).where(workers.c.node_id == node.id))]
    freed = await recover_claims_of(session, mine, losses_max, f"node {name!r} was removed")
    await forget_units(session, node.id)
    await session.run(delete(nodes).where(nodes.c.id == node.id))
    session.hints.add(ORDERS)
    return Removed(sessions, freed)
