"""Ids that were written short, by their last digits: ids made about the same time share their beginnings."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Table, select

from aaiclick.orchestration.store.access_tables import tokens
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, tasks, workers

NEWEST_LOOKED_AT = 1_000_000
"""No index knows the ends of ids. One pass over the newest, along the primary key, costs the same however many there
are: 0.2 to 0.7 s if there are so many, next to nothing if there are few."""

_TABLES: Mapping[str, Table] = {"job": jobs, "task": tasks, "token": tokens, "worker": workers}


async def is_there(session: Session, kind: str, wanted: int) -> bool:
    """Whether there is one with this whole id."""
    column = _TABLES[kind].c.id
    return await session.first(select(column).where(column == wanted)) is not None


async def find_by_end(session: Session, kind: str, digits: str, limit: int) -> list[int]:
    """The newest ids that end with these digits."""
    column = _TABLES[kind].c.id
    newest = select(column).order_by(column.desc()).limit(NEWEST_LOOKED_AT).subquery()
    choice = (
        select(newest.c.id)
        .where(newest.c.id % 10 ** len(digits) == int(digits))
        .order_by(newest.c.id.desc())
        .limit(limit)
    )
    return [row.id for row in await session.rows(choice)]
