"""The session that store functions take: an open transaction, or a connection whose statements commit one by one.

Store functions never commit; `Database` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Executable, Row, Table, select

from aaiclick.orchestration.rules.lanes import KnownLanes
from aaiclick.orchestration.store.dialects.contract import Connection, Dialect

S = TypeVar("S", bound=Executable)

_built: dict[tuple[Callable[[Dialect], Any], str], Any] = {}


class Session:
    """One open transaction on one connection; or a connection without one, for reads or for a single write."""

    __slots__ = ("connection", "dialect", "hints", "lanes", "reads_only")

    def __init__(
        self, connection: Connection, dialect: Dialect, *, reads_only: bool = False, lanes: KnownLanes | None = None
    ) -> None:
        self.connection = connection
        self.dialect = dialect
        self.reads_only = reads_only
        self.hints: set[str] = set()
        """Hints that are sent after the commit; see `bus`."""
        self.lanes = KnownLanes() if lanes is None else lanes
        """The lanes that this process has met."""

    @property
    def writing(self) -> Connection:
        """Return the connection for a statement that writes; refused in a session that only reads.

        Reads may be answered by a replica one day, where a write would be lost or refused.
        """
        if self.reads_only:
            raise AssertionError("a read-only session was given a write: use transact, or write_one")
        return self.connection

    def _for(self, statement: Executable) -> Connection:
        return self.writing if self.reads_only and getattr(statement, "is_dml", False) else self.connection

    def built(self, build: Callable[[Dialect], S]) -> S:
        """Return the statement, built once per dialect: building it takes longer than SQLite takes to run it."""
        key = (build, self.dialect.name)
        if key not in _built:
            _built[key] = build(self.dialect)
        statement: S = _built[key]
        return statement

    async def rows(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Row[Any]]:
        return (await self._for(statement).execute(statement, values)).all()

    async def first(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Row[Any] | None:
        return (await self._for(statement).execute(statement, values)).first()

    async def scalar(self, statement: Executable) -> Any:
        return (await self._for(statement).execute(statement)).scalar()

    async def run(self, statement: Executable, values: Mapping[str, Any] | None = None) -> int:
        """Execute a write; return the number of rows that it changed."""
        result = await self.writing.execute(statement, values)
        return int(result.rowcount)

    async def run_many(self, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            await self.writing.execute(statement, list(rows))

    async def insert(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows and self.writing:
            await self.dialect.insert_rows(self, table, rows)

    async def now(self) -> datetime:
        """Return the database's time at this instant, not at the start of the transaction."""
        moment: datetime = await self.scalar(select(self.dialect.now()))
        return moment

    def any_of(self, column: ColumnElement[int], ids: Sequence[int]) -> ColumnElement[bool]:
        return self.dialect.any_of(column, ids)
