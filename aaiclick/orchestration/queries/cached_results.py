"""Remembered results: here they are listed and removed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from aaiclick.errors import NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models import CacheEntry
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import plain
from aaiclick.orchestration.rules.validation import check_id, check_paging
from aaiclick.orchestration.store.reading import cached_results as store
from aaiclick.orchestration.submitting.entrypoints import entrypoint_of

REMOVED_AT_ONCE = 500


async def list_cache(
    function: str | Callable[..., Any] | None = None, limit: int | None = None, *, before: int | None = None
) -> list[CacheEntry]:
    """Return remembered results, newest first; only those of one function if it is given, as itself or by its name.

    `before` is the id of the last entry of the previous page.
    """
    count, _ = check_paging(limit)
    below = None if before is None else check_id(before, "before")
    async with connected() as database:
        return await database.read(lambda session: store.list_entries(session, _name_of(function), count, below))


async def clear_cache(function: str | Callable[..., Any] | None = None, *, entry_id: int | None = None) -> int:
    """Remove remembered results, and return how many: all, those of one function, or one entry.

    The tables that they kept are dropped once nothing else needs them. Raise NotFound if there is no such entry.
    """
    name, only = _name_of(function), None if entry_id is None else check_id(entry_id, "entry id")
    step = partial(store.remove_chosen, limit=REMOVED_AT_ONCE, entrypoint=name, entry_id=only)
    total = 0
    async with connected() as database:
        while removed := await database.transact(step):
            total += removed
    if entry_id is not None and not total:
        raise NotFound(what="cache entry", field="id", value=entry_id, hint="List them with: aaiclick cache list")
    return total


def _name_of(function: str | Callable[..., Any] | None) -> str | None:
    if function is None or isinstance(function, str):
        return None if function is None else plain(function)
    return entrypoint_of(function)
