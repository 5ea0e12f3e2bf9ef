"""Nodes: the machines that run tasks. Listing them, closing them for new tasks, emptying and removing them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aaiclick.config import settings
from aaiclick.errors import NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models.node_info import NodeInfo
from aaiclick.orchestration.rules.nodes import NodeState, NodeStatus
from aaiclick.orchestration.rules.validation import check_name, check_paging, check_status
from aaiclick.orchestration.store.nodes import states
from aaiclick.orchestration.store.nodes.states import Removed
from aaiclick.orchestration.store.reading import nodes as reading


async def list_nodes(
    state: NodeState | str | None = None,
    limit: int | None = None,
    *,
    status: NodeStatus | str | None = None,
    pool: str | None = None,
    after: str | None = None,
) -> Sequence[NodeInfo]:
    """Return nodes in the order of their names, also dead ones; `after` is the last name of the page before."""
    wanted = None if state is None else check_status(state, NodeState, "state")
    alive = None if status is None else check_status(status, NodeStatus)
    home = None if pool is None else check_name(pool, "pool")
    last = None if after is None else check_name(after, "after")
    count, _ = check_paging(limit, None)
    found: list[NodeInfo] = []
    async with connected() as database:
        while True:  # a status is computed, so pages are read until enough have it
            read = partial(reading.list_nodes, state=wanted, pool=home, after=last, limit=count)
            page = await database.read(read)
            found += [node for node in page if alive in (None, node.status)]
            if len(page) < count or len(found) >= count:
                return found[:count]
            last = page[-1].name


async def get_node(name: str) -> NodeInfo | None:
    """Return the node as it is now; None if there is none of this name."""
    wanted = check_name(name, "Node name")
    async with connected() as database:
        return await database.read(lambda session: reading.get_node(session, wanted))


async def cordon_node(name: str) -> NodeInfo:
    """Let the workers of a node claim no more tasks; what they run goes on, and they stay."""
    return await _set_state(name, NodeState.CORDONED)


async def uncordon_node(name: str) -> NodeInfo:
    """Let the workers of a node claim tasks again."""
    return await _set_state(name, NodeState.OPEN)


async def drain_node(name: str) -> NodeInfo:
    """Ask the workers of a node to claim no more tasks, to finish what they run, and to leave."""
    return await _set_state(name, NodeState.DRAINING)


async def _set_state(name: str, state: NodeState) -> NodeInfo:
    wanted = check_name(name, "Node name")
    async with connected() as database:
        if await database.transact(lambda session: states.set_state(session, wanted, state)) is None:
            raise _no_node(wanted)
        found = await database.read(lambda session: reading.get_node(session, wanted))
    if found is None:  # it was removed meanwhile
        raise _no_node(wanted)
    return found


async def remove_node(name: str, *, force: bool = False) -> Removed:
    """Forget a node. What its workers still held is given to others in the same transaction.

    Refused while one of its workers is alive. With `force` their sessions are ended: only for a machine that is known
    to be gone, since its bodies would otherwise go on for a while beside those of others.
    """
    wanted, losses_max = check_name(name, "Node name"), settings().losses_max
    async with connected() as database:
        removed = await database.transact(lambda session: states.remove_node(session, wanted, losses_max, force=force))
    if removed is None:
        raise _no_node(wanted)
    return removed


def _no_node(name: str) -> NotFound:
    return NotFound(what="node", field="name", value=name, hint="See: aaiclick node list")
