"""What copies of whole tables need: the byte order of keys, and numbers that go on behind those that were copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, ColumnElement, String, func, select

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session


class PlainCopyMoves:
    """For SQLite and MariaDB, which compare bytes, and count on by themselves."""

    def in_byte_order(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column

    async def count_on(self, session: Session, column: Column[int]) -> None:
        """Do nothing."""


class PostgresCopyMoves:
    """For PostgreSQL, which may compare texts by a language, and counts apart from what was inserted."""

    def in_byte_order(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column.collate("C") if isinstance(column.type, String) else column

    async def count_on(self, session: Session, column: Column[int]) -> None:
        sequence = func.pg_get_serial_sequence(column.table.name, column.name)
        await session.scalar(select(func.setval(sequence, func.max(column))))
