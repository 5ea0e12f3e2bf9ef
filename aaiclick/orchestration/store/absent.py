"""Rows that may be there already: an answer that was lost is asked for again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Insert, Table
from sqlalchemy import insert as plain_insert

from aaiclick.orchestration.store.session import Session


async def insert_absent(session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those of these rows whose keys are not there."""
    if rows:
        await session.run_many(_statement(session.dialect.name, table), rows)


@cache
def _statement(dialect: str, table: Table) -> Insert:
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # only who keeps the state there pays for loading it

        return postgresql.insert(table).on_conflict_do_nothing()
    if dialect == "sqlite":
        from sqlalchemy.dialects import sqlite  # as above

        return sqlite.insert(table).on_conflict_do_nothing()
    return plain_insert(table).prefix_with("IGNORE")
