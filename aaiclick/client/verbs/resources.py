"""Resources: capacities, what is free of them, and who holds the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aaiclick.client.calls import part
from aaiclick.client.verbs.asking import Asking

if TYPE_CHECKING:
    from aaiclick.representations.resources import ResourceAnswer, ResourcePage, ResourceRemoved


class ResourceVerbs(Asking):
    """Methods about resources."""

    async def list_resources(
        self, *, name: str | None = None, node: str | None = None, after: str | None = None, limit: int | None = None
    ) -> ResourcePage:
        """Return a page of capacities with what is free and who holds the rest; those of the installation first.

        `after` is the `next` of the page before.
        """
        found: ResourcePage = await self._get("/resources", name=name, node=node, after=after, limit=limit)
        return found

    async def set_resource(self, name: str, amount: float) -> ResourceAnswer:
        """Set a capacity of the whole installation."""
        found: ResourceAnswer = await self._put(f"/resources/{part(name)}", {"amount": amount})
        return found

    async def remove_resource(self, name: str) -> ResourceRemoved:
        """Forget a capacity of the whole installation; raise NotFound."""
        found: ResourceRemoved = await self._post(f"/resources/{part(name)}/remove")
        return found
