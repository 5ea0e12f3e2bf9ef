"""The registry of nodes: a node that is registered has a session, which its heartbeats keep alive."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from aaiclick.errors import NotFound, SessionOver
from aaiclick.ids import new_id
from aaiclick.orchestration.models.node_info import NodeDescription, NodeInfo
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.rules.validation import check_name
from aaiclick.orchestration.store import workers
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.nodes import heartbeats
from aaiclick.orchestration.store.nodes.registration import register_node
from aaiclick.orchestration.store.reading import nodes as reading
from aaiclick.orchestration.store.session import Session


class NodeRegistry:
    """Registers nodes in a database. Nobody pings them: a node that is silent for a session's length is dead."""

    def __init__(self, database: Database, *, session_s: float = 30.0) -> None:
        self.database = database
        self.session_s = session_s

    async def register_node(
        self, node_id: str, capabilities: Mapping[str, Any] | None = None, executor_types: Sequence[str] = ("python",)
    ) -> NodeInfo:
        """Register a node, with a session of its own unless it has one; what is said of it replaces what was said."""
        said = NodeDescription(node_id, None, dict(capabilities or {}), [*executor_types])
        await self.database.transact(lambda session: self._register(session, said))
        return await self.get_node(node_id)

    async def _register(self, session: Session, said: NodeDescription) -> None:
        node = await register_node(session, said)
        if await heartbeats.sessions_of(session, said.name):
            return
        facts: dict[str, Any] = {"hostname": said.name, "pid": os.getpid(), "name": said.name, "concurrency": 1}
        cordoned = node.state != NodeState.OPEN
        facts |= {"session_s": self.session_s, "worker_id": new_id(), "node_id": node.id, "cordoned": cordoned}
        await workers.add_worker(session, **facts)

    async def get_node(self, node_id: str) -> NodeInfo:
        """Return the node as it is now. Raise NotFound if there is none of this name."""
        name = check_name(node_id, "node_id")
        found = await self.database.read(lambda session: reading.get_node(session, name))
        if found is None:
            raise NotFound(what="node", field="name", value=name, hint="Register it first.")
        return found

    async def list_nodes(self) -> list[NodeInfo]:
        """Return all nodes, by their names."""
        return await self.database.read(reading.list_nodes)

    async def heartbeat(self, node_id: str, duration: float | None = None) -> None:
        """Renew the session of a node. Raise SessionOver if it has none: it has to register again."""
        worker_id = await self.worker_of(node_id)
        renew = partial(workers.renew_session, worker_id=worker_id, session_s=duration or self.session_s)
        if not (await self.database.transact(renew)).alive:
            raise SessionOver(worker_id=worker_id, cause="it was ended", swept=True)

    async def mark_stale(self, node_id: str) -> None:
        """Let the node's session be past its end as of now: it is over, unless a heartbeat comes before the sweep."""
        await self.get_node(node_id)
        await self.database.transact(lambda session: heartbeats.expire_node(session, node_id))

    async def deregister_node(self, node_id: str) -> None:
        """End the sessions of a node. What it held is given to others by the next recovery."""
        await self.get_node(node_id)
        for worker_id in await self.database.read(lambda session: heartbeats.sessions_of(session, node_id)):
            await self.database.transact(partial(workers.stop_worker, worker_id=worker_id))

    async def worker_of(self, node_id: str) -> int:
        """Return the worker that has the node's newest session. Raise SessionOver if it has none."""
        await self.get_node(node_id)
        found = await self.database.read(lambda session: heartbeats.sessions_of(session, node_id))
        if not found:
            raise SessionOver(worker_id=f"of node {node_id}", cause="the node has no session", swept=True)
        return found[0]
