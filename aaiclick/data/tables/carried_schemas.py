"""Schemas that travel with references, so that a task need not look up the tables of its arguments."""

from __future__ import annotations

from aaiclick.data.tables.table_names import is_unnamed

CARRIED = "schema"
"""The field of a reference that has the schema of its table, as JSON."""

FIXED = "fixed"
"""The field of a reference to a table that does not change any more: others have been told what is in it."""

CARRIED_COLUMNS_MAX = 100
"""The schema of a table with more columns is looked up instead: each part of an operator would carry it."""


def may_carry(table: str, columns: int) -> bool:
    """Return whether references to a table carry its schema: if it is small, and the columns can never change."""
    return columns <= CARRIED_COLUMNS_MAX and is_unnamed(table)
