"""Ids that were written short, by their last digits: ids made about the same time share their beginnings."""

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
    """Whether there is one with this whole id."""
    column = _TABLES[kind].c.id
    return await session.first(select(column).where(column == wanted)) is not None


async def find_by_end(session: Session, kind: str, digits: str, limit: int) -> list[int]:
    """Some of the ids that end with these digits, at most so many.

    No index knows the ends of ids: this is one pass over all of them, 0.1 to 0.7 s for a million. In an order it would
    take up to five times as long.
    """
    column = _TABLES[kind].c.id
    choice = select(column).where(column % 10 ** len(digits) == int(digits)).limit(limit)
    return [row.id for row in await session.rows(choice)]
