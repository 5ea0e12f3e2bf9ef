"""Remembered results of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aaiclick.client.verbs.asking import Asking, Id, given

if TYPE_CHECKING:
    from aaiclick.representations.cached_results import CacheCleared, CachePage


class CacheVerbs(Asking):
    """Methods about remembered results."""

    async def list_cache(
        self, entrypoint: str | None = None, *, before: Id | None = None, limit: int | None = None
    ) -> CachePage:
        """Return a page of remembered results, newest first, of one function or all."""
        found: CachePage = await self._get("/cache", entrypoint=entrypoint, before=before, limit=limit)
        return found

    async def clear_cache(self, entrypoint: str | None = None, *, entry_id: Id | None = None) -> CacheCleared:
        """Remove remembered results: all, those of one function, or one entry; raise NotFound without that entry."""
        body = given({"entrypoint": entrypoint, "entry_id": None if entry_id is None else str(entry_id)})
        found: CacheCleared = await self._post("/cache/clear", body)
        return found
