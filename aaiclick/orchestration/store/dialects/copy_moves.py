"""What copies of whole tables need: the byte order of keys, rows in one form, and numbers that go on behind theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Boolean, Column, ColumnElement, Integer, String, Text, cast, func, select, type_coerce

from aaiclick.orchestration.store.definitions.column_types import JsonText, UtcTime

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session


class PlainCopyMoves:
    """For SQLite, which compares bytes, and counts on by itself."""

    def in_byte_order(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column

    def as_in_sqlite(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        if isinstance(column.type, UtcTime):
            return self._time(column)
        if isinstance(column.type, Boolean):
            return type_coerce(column, Integer)
        return type_coerce(column, Text) if isinstance(column.type, JsonText) else column

    def _time(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return type_coerce(column, String)

    async def count_on(self, session: Session, column: Column[int]) -> None:
        """Do nothing."""


class MariadbCopyMoves(PlainCopyMoves):
    """For MariaDB, which does the same, but has times of its own."""

    def _time(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.date_format(column, "%Y-%m-%d %H:%i:%s.%f", type_=String)


class PostgresCopyMoves:
    """For PostgreSQL, which may compare texts by a language, and counts apart from what was inserted."""

    def in_byte_order(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column.collate("C") if isinstance(column.type, String) else column

    def as_in_sqlite(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        if isinstance(column.type, UtcTime):
            return func.to_char(func.timezone("UTC", column), "YYYY-MM-DD HH24:MI:SS.US", type_=String)
        if isinstance(column.type, Boolean):
            return cast(column, Integer)
        return cast(column, Text) if isinstance(column.type, JsonText) else column

    async def count_on(self, session: Session, column: Column[int]) -> None:
        sequence = func.pg_get_serial_sequence(column.table.name, column.name)
        await session.scalar(select(func.setval(sequence, func.max(column))))
