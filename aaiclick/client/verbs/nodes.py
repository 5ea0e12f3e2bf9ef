"""Nodes: the machines that run tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aaiclick.client.calls import part
from aaiclick.client.verbs.asking import Asking

if TYPE_CHECKING:
    from aaiclick.representations.nodes import NodeAnswer, NodePage, NodeRemoved


class NodeVerbs(Asking):
    """Methods about nodes."""

    async def list_nodes(
        self,
        *,
        state: str | None = None,
        status: str | None = None,
        pool: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> NodePage:
        """Return a page of nodes in the order of their names, also dead ones. `after` is the `next` of the page before.

        `state`: open, cordoned or draining. `status`: healthy, stale or dead.
        """
        found: NodePage = await self._get("/nodes", state=state, status=status, pool=pool, after=after, limit=limit)
        return found

    async def get_node(self, name: str) -> NodeAnswer:
        """Return a node; raise NotFound."""
        found: NodeAnswer = await self._get(f"/nodes/{part(name)}")
        return found

    async def cordon_node(self, name: str) -> NodeAnswer:
        """Let the workers of a node claim no more tasks; what they run goes on, and they stay."""
        found: NodeAnswer = await self._post(f"/nodes/{part(name)}/cordon")
        return found

    async def uncordon_node(self, name: str) -> NodeAnswer:
        """Let the workers of a node claim tasks again."""
        found: NodeAnswer = await self._post(f"/nodes/{part(name)}/uncordon")
        return found

    async def drain_node(self, name: str) -> NodeAnswer:
        """Ask the workers of a node to claim no more tasks, to finish what they run, and to leave."""
        found: NodeAnswer = await self._post(f"/nodes/{part(name)}/drain")
        return found

    async def remove_node(self, name: str, *, force: bool = False) -> NodeRemoved:
        """Forget a node that is gone; what its workers still held is given to others.

        Raise Conflict if one of its workers is alive, unless `force` is given: only for a machine that is known to be
        gone.
        """
        found: NodeRemoved = await self._post(f"/nodes/{part(name)}/remove", {"force": force})
        return found
