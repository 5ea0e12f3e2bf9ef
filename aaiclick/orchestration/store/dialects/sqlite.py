"""The dialect of SQLite: one writer at a time, one machine, no server."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import ColumnElement, Double, Table, Text, bindparam, func, insert, select

from aaiclick.clock import utc_now
from aaiclick.orchestration.store.definitions.column_types import SQLITE_TIME, UtcTime
from aaiclick.orchestration.store.dialects import portable, sqlite_moves
from aaiclick.orchestration.store.dialects.contract import (
    ClaimedTask,
    Connection,
    CopyMoves,
    EndedTask,
    QueueStretch,
    ReadyKey,
    causes,
    driver_of,
)
from aaiclick.orchestration.store.dialects.copy_moves import PlainCopyMoves
from aaiclick.orchestration.store.dialects.sqlite_tables import SqliteTables
from aaiclick.orchestration.store.dialects.table_moves import TableMoves
from aaiclick.orchestration.store.inline import InlineEngine

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Done
    from aaiclick.orchestration.store.session import Session

BUSY_S = 30.0
"""How many seconds to wait for a writer in another process."""

PAUSE_S_MIN, PAUSE_S_MAX = 0.001, 0.05

ON_A_THREAD = 2_000
"""From this many rows on, an insert runs on a thread, since it would block the event loop."""

_PRAGMAS = (
    f"busy_timeout = {int(BUSY_S * 1000)}",
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "cache_size = -16000",
    "case_sensitive_like = ON",
    "busy_timeout = 10",
)
"""The switch to WAL may need a lock, and waits for it inside SQLite for up to BUSY_S, which blocks the event loop.

From then on SQLite waits for 10 ms at most: `command` repeats `BEGIN`, and sleeps in between without blocking the loop.
"""


class SqliteDialect:
    """SQLite's implementation of `Dialect`."""

    name: ClassVar[str] = "sqlite"
    begin: ClassVar[str] = "BEGIN IMMEDIATE"
    one_writer: ClassVar[bool] = True
    dead_rows_linger: ClassVar[bool] = False
    leaves_its_index: ClassVar[bool] = False
    update_returning: ClassVar[bool] = True
    groups_by_jumping: ClassVar[bool] = False
    claims_at_once: ClassVar[bool] = False
    tables: ClassVar[TableMoves] = SqliteTables()
    copies: ClassVar[CopyMoves] = PlainCopyMoves()

    def __init__(self, time: Callable[[], datetime] = utc_now) -> None:
        self.time = time

    def engine(self, url: str) -> InlineEngine:
        return InlineEngine(url)

    async def prepare(self, connection: Connection) -> None:
        for pragma in _PRAGMAS:
            await self.command(connection, f"PRAGMA {pragma}")
        driver = driver_of(connection)
        driver.create_function("aai_now", 0, self._moment)
        driver.create_function("aai_later", 1, self._later)

    def _moment(self) -> str:
        return self.time().strftime(SQLITE_TIME)

    def _later(self, seconds: float) -> str:
        return (self.time() + timedelta(seconds=seconds)).strftime(SQLITE_TIME)

    def is_closed(self, connection: Connection) -> bool:
        return False

    async def command(self, connection: Connection, sql: str) -> None:
        driver = driver_of(connection)
        pause_s, until = PAUSE_S_MIN, time.monotonic() + BUSY_S
        while True:
            try:
                driver.execute(sql)
                return
            except sqlite3.OperationalError as error:
                if (
                    not sql.startswith((self.begin, "PRAGMA"))
                    or not self.is_transient(error)
                    or time.monotonic() > until
                ):
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, PAUSE_S_MAX)

    def now(self) -> ColumnElement[datetime]:
        return func.aai_now(type_=UtcTime)

    def later(self, seconds: float) -> ColumnElement[datetime]:
        return func.aai_later(seconds, type_=UtcTime)

    def seconds(self, earlier: ColumnElement[Any], later: ColumnElement[Any]) -> ColumnElement[float]:
        days: ColumnElement[float] = func.julianday(later, type_=Double) - func.julianday(earlier, type_=Double)
        return days * 86400.0

    def any_of(self, column: ColumnElement[Any], ids: Sequence[int]) -> ColumnElement[bool]:
        values = func.json_each(bindparam(None, self.pack(ids), unique=True)).table_valued("value")
        return column.in_(select(values.c.value))

    def in_ids(self, column: ColumnElement[Any], name: str = "ids") -> ColumnElement[bool]:
        values = func.json_each(bindparam(name, type_=Text)).table_valued("value")
        return column.in_(select(values.c.value))

    def pack(self, ids: Sequence[Any]) -> str:
        return json.dumps(list(ids))

    def is_transient(self, error: BaseException) -> bool:
        busy = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        return any((getattr(step, "sqlite_errorcode", 0) & 0xFF) in busy for step in causes(error))

    async def insert_rows(self, session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) < ON_A_THREAD:
            await session.run_many(insert(table), rows)
        else:
            connection = session.writing.sync_connection
            assert connection is not None, "the connection is closed"
            await _on_a_thread(partial(connection.execute, insert(table), list(rows)))

    async def claim_ready(
        self,
        session: Session,
        *,
        worker_id: int,
        reserved_for: int,
        lane: int,
        limit: int,
        after: ReadyKey | None,
        call: int = 0,
        begins: int = 0,
    ) -> list[ClaimedTask]:
        driver = driver_of(session.writing)
        return sqlite_moves.claim(driver, self._moment(), worker_id, reserved_for, lane, limit, after, call, begins)

    async def sweep_queue(self, connection: Connection) -> None:
        """Do nothing: SQLite reuses the space of deleted rows by itself."""

    async def complete_claims(self, session: Session, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
        return sqlite_moves.complete(driver_of(session.writing), self._moment(), worker_id, done)

    async def delete_ready(self, session: Session, stretch: QueueStretch, ids: Sequence[int]) -> None:
        await portable.delete_ready(session, stretch, ids)

    async def delete_claims(self, session: Session, worker_id: int, ids: Sequence[int]) -> None:
        await portable.delete_claims(session, worker_id, ids)


async def _on_a_thread(work: Callable[[], object]) -> None:
    """Run `work` on a thread and wait for its end, even if the caller is cancelled.

    The connection must not be used by the caller while the thread still uses it.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    working.result()
