"""Rows that may be there already: an answer that was lost is asked for again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Insert, Table
from sqlalchemy import insert as plain_insert
from sqlalchemy.dialects import mysql, postgresql, sqlite

from aaiclick.orchestration.store.session import Session


async def insert_absent(session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those of these rows whose keys are not there."""
    if rows:
        await session.run_many(_statement(session.dialect.name, table), rows)


async def insert_or_change(session: Session, table: Table, rows: Sequence[Mapping[str, Any]], column: str) -> None:
    """Insert these rows; where a key is there, that one column gets the new value."""
    if rows:
        await session.run_many(_changing(session.dialect.name, table, column), rows)


@cache
def _changing(dialect: str, table: Table, column: str) -> Insert:
    keys = list(table.primary_key.columns)
    if dialect == "postgresql":
        in_postgres = postgresql.insert(table)
        return in_postgres.on_conflict_do_update(index_elements=keys, set_={column: in_postgres.excluded[column]})
    if dialect == "sqlite":
        in_sqlite = sqlite.insert(table)
        return in_sqlite.on_conflict_do_update(index_elements=keys, set_={column: in_sqlite.excluded[column]})
    in_mariadb = mysql.insert(table)
    return in_mariadb.on_duplicate_key_update({column: in_mariadb.inserted[column]})


@cache
def _statement(dialect: str, table: Table) -> Insert:
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    if dialect == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return plain_insert(table).prefix_with("IGNORE")
