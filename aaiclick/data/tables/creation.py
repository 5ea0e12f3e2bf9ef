"""The statement that makes the table of an Object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aaiclick.data import sql
from aaiclick.data.schema import Schema
from aaiclick.data.tables.storage import PLAINLY, Storage
from aaiclick.errors import ValueExposed
from aaiclick.telemetry.masks import is_mentioned


def creation(
    table: str,
    schema: Schema,
    comment: Mapping[str, Any],
    *,
    columns: str = "",
    granule: int = 0,
    storage: Storage = PLAINLY,
) -> str:
    """CREATE TABLE. A name that is taken is refused: no two Objects share a table unknowingly.

    With a granule, it is sorted by its first column, and so many rows are read at least.
    """
    options = "non_replicated_deduplication_window = 1000"
    if granule:
        storage = Storage(order_by=(schema.names[0],))
        options = f"index_granularity = {granule}"
    inside = f"({columns}) " if columns else ""
    text = f"CREATE TABLE {sql.name(table)} {inside}{storage.clauses(schema.ordered)}"
    if is_mentioned(text):
        raise exposed()
    return f"{text} SETTINGS {options} COMMENT {sql.text(schema.table_comment(**comment))}"


def exposed() -> ValueExposed:
    """The error of a secret in a name."""
    return ValueExposed(what="The name, a column or a type of an Object", hint="Call it otherwise.")
