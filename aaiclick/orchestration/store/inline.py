"""SQLite on the event loop's own thread.

A statement takes some microseconds; sending each to another thread and back, as aiosqlite must, costs ten times that.
Two things could take long: waiting for another process's write lock, which the dialect does with pauses that do not
block the loop, and a bulk insert, which it does on a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, CursorResult, Engine, Executable, ScalarResult, create_engine, make_url
from sqlalchemy.pool import NullPool, PoolProxiedConnection

T = TypeVar("T")
Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


class InlineConnection:
    """A synchronous SQLAlchemy connection with the methods of AsyncConnection, which run in the caller's thread."""

    def __init__(self, connection: Connection) -> None:
        self.sync_connection: Connection | None = connection

    @property
    def _open(self) -> Connection:
        assert self.sync_connection is not None, "the connection is closed"
        return self.sync_connection

    @property
    def engine(self) -> Engine:
        return self._open.engine

    async def execute(self, statement: Executable, parameters: Parameters = None) -> CursorResult[Any]:
        return self._open.execute(statement, parameters)

    async def exec_driver_sql(self, statement: str) -> CursorResult[Any]:
        return self._open.exec_driver_sql(statement)

    async def scalars(self, statement: Executable) -> ScalarResult[Any]:
        return self._open.scalars(statement)

    async def run_sync(self, work: Callable[[Connection], T]) -> T:
        return work(self._open)

    async def get_raw_connection(self) -> PoolProxiedConnection:
        return self._open.connection

    async def rollback(self) -> None:
        self._open.rollback()

    @property
    def invalidated(self) -> bool:
        return self._open.invalidated

    async def invalidate(self) -> None:
        self._open.invalidate()

    async def close(self) -> None:
        if self.sync_connection is not None:
            self.sync_connection.close()
            self.sync_connection = None


class InlineEngine:
    """An engine whose connections are InlineConnections."""

    def __init__(self, url: str) -> None:
        plain = make_url(url).set(drivername="sqlite")
        # no pool for a file: waiting for a connection would block the loop in which others return theirs
        unpooled = {"poolclass": NullPool} if plain.database else {}
        self.sync_engine = create_engine(
            plain,
            isolation_level="AUTOCOMMIT",
            connect_args={"check_same_thread": False},
            hide_parameters=True,
            **unpooled,
        )

    async def connect(self) -> InlineConnection:
        return InlineConnection(self.sync_engine.connect())

    async def dispose(self) -> None:
        self.sync_engine.dispose()
