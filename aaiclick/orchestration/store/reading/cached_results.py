"""Reads and removals of remembered results, as people ask for them."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Text, cast, func, select

from aaiclick.orchestration.models import CacheEntry
from aaiclick.orchestration.store.definitions.cache_tables import cache_entries
from aaiclick.orchestration.store.object_tables.cache_entries import remove_entries
from aaiclick.orchestration.store.session import Session

_SHOWN = tuple(cache_entries.c[name] for name in CacheEntry.__slots__ if name != "size")


async def list_entries(session: Session, entrypoint: str | None, limit: int, before: int | None) -> list[CacheEntry]:
    """Return entries, newest first; `before` is the id of the last one on the previous page."""
    size = func.length(cast(cache_entries.c.result, Text)).label("size")
    chosen = select(*_SHOWN, size).where(*_which(entrypoint=entrypoint))
    if before is not None:
        chosen = chosen.where(cache_entries.c.id < before)
    rows = await session.rows(chosen.order_by(cache_entries.c.id.desc()).limit(limit))
    return [CacheEntry.from_row(row) for row in rows]


async def remove_chosen(
    session: Session, limit: int, *, entrypoint: str | None = None, entry_id: int | None = None
) -> int:
    """Remove up to `limit` of these entries, all if none are named; return how many."""
    return await remove_entries(session, limit, *_which(entrypoint=entrypoint, entry_id=entry_id))


def _which(*, entrypoint: str | None = None, entry_id: int | None = None) -> list[ColumnElement[bool]]:
    entry = cache_entries.c
    named = [] if entrypoint is None else [entry.entrypoint == entrypoint]
    return named if entry_id is None else [*named, entry.id == entry_id]
