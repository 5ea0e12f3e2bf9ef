"""Rows that may be there already: an answer that was lost is asked for again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Insert, Table
from sqlalchemy import insert as plain_insert
from sqlalchemy.dialects import postgresql, sqlite

from aaiclick.orchestration.store.session import Session


async def insert_absent(session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those of these rows whose keys are not there."""
    if rows:
        await session.run_many(_statement(session.dialect.name, table), rows)


@cache
def _statement(dialect: str, table: Table) -> Insert:
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    if dialect == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return plain_insert(table).prefix_with("IGNORE")
