"""Retention of remembered results: those whose time is over go, and keys go with the job that used them."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, exists, or_

from aaiclick.orchestration.store.definitions.cache_tables import cache_entries
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.object_tables.cache_entries import KEY, remove_entries
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs

STEP = 500
"""Entries that one transaction removes, at most."""


async def remove_expired(session: Session) -> int:
    """Remove up to STEP entries whose time is over, and free their tables; return how many."""
    return await remove_entries(session, STEP, are_over(session.dialect))


def are_over(dialect: Dialect) -> ColumnElement[bool]:
    """Return the condition that an entry is over, by the database's clock."""
    entry = cache_entries.c
    forgotten = and_(entry.kind == KEY, ~exists().where(jobs.c.id == entry.job_id))
    return or_(entry.expires_at <= dialect.now(), forgotten)
