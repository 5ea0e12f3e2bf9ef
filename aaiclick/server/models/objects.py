"""What is answered about Objects."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class ObjectList(BaseModel):
    """The names of the Objects that stay."""

    objects: list[str]


class ColumnAnswer(BaseModel):
    """A column: its name and its ClickHouse type."""

    name: str
    type: str


class SchemaAnswer(BaseModel):
    """What an Object holds."""

    name: str
    shape: str
    ordered: bool
    columns: list[ColumnAnswer]


class RowsAnswer(BaseModel):
    """Rows of an Object. `complete` tells whether these are all; what JSON cannot say is written as a string."""

    columns: list[ColumnAnswer]
    rows: list[list[Any]]
    complete: bool
