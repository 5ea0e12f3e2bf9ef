"""Lookup of ids by their last digits. The first digits do not tell ids apart that were made about the same time."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Table, select

from aaiclick.orchestration.store.definitions.access_tables import tokens
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import backfills, jobs, tasks, workers

_TABLES: Mapping[str, Table] = {
    "backfill": backfills,
    "job": jobs,
    "task": tasks,
    "token": tokens,
    "worker": workers,
}


async def is_there(session: Session, kind: str, wanted: int) -> bool:
    """Return whether a row of this kind has exactly this id."""
    column = _TABLES[kind].c.id
    return await session.first(select(column).where(column == wanted)) is not None


async def find_by_end(session: Session, kind: str, digits: str, limit: int) -> list[int]:
    """Return up to `limit` ids that end with these digits, in no particular order.

    No index helps here: this reads all ids, which takes 0.1 to 0.7 s for a million. Sorting would take up to five times
    as long.
    """
    column = _TABLES[kind].c.id
    choice = select(column).where(column % 10 ** len(digits) == int(digits)).limit(limit)
    return [row.id for row in await session.rows(choice)]
