"""Inserts of rows that may exist already, as after a call whose answer was lost and which is repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Insert, Select, Table
from sqlalchemy import insert as plain_insert

from aaiclick.orchestration.store.session import Session


async def insert_missing(session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose keys are not in the table yet."""
    if rows:
        await session.run_many(_statement(session.dialect.name, table), rows)


async def copy_missing(
    session: Session, table: Table, chosen: Callable[[], Select[Any]], values: Sequence[Mapping[str, Any]]
) -> None:
    """Insert the rows that the query `chosen` selects for each of `values`, except those whose keys exist already.

    The query names its columns as the table does. The rows are copied in the database and never sent to this process.
    """
    if values:
        await session.run_many(_copying(session.dialect.name, table, chosen), values)


@cache
def _copying(dialect: str, table: Table, chosen: Callable[[], Select[Any]]) -> Insert:
    query = chosen()
    names = [column.name for column in query.selected_columns]
    return _statement(dialect, table).from_select(names, query)


@cache
def _statement(dialect: str, table: Table) -> Insert:
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # imported here: slow to load, and used for this database only

        return postgresql.insert(table).on_conflict_do_nothing()
    if dialect == "sqlite":
        from sqlalchemy.dialects import sqlite  # as above

        return sqlite.insert(table).on_conflict_do_nothing()
    return plain_insert(table).prefix_with("IGNORE")
