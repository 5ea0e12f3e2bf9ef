"""The dialect of MariaDB: READ COMMITTED, times in UTC by SYSDATE, no UPDATE … RETURNING (pitfall T20)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import ColumnElement, Double, Table, bindparam, func, insert, literal_column, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from aaiclick.orchestration.store.definitions.column_types import UtcTime
from aaiclick.orchestration.store.dialects import mariadb_moves
from aaiclick.orchestration.store.dialects.contract import (
    ClaimedTask,
    Connection,
    CopyMoves,
    EndedTask,
    QueueStretch,
    ReadyKey,
    causes,
    driver_of,
    idle_transaction_s,
    watch_line,
)
from aaiclick.orchestration.store.dialects.copy_moves import MariadbCopyMoves
from aaiclick.orchestration.store.dialects.mariadb_tables import MariadbTables
from aaiclick.orchestration.store.dialects.table_moves import TableMoves

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Done
    from aaiclick.orchestration.store.session import Session

TRANSIENT = {1213, 1205, 1020}
"""Error codes: deadlock, lock wait timeout, record changed since last read."""

ROWS_AT_ONCE = 2_000
"""Rows in one INSERT, well below max_allowed_packet."""

_SESSION = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
    "SET SESSION innodb_lock_wait_timeout = 20",
)

# A DELETE with IN that concerns a good part of a small table makes MariaDB read the whole table, and wait for every row
# that others have locked. With a join from the ids, in this order, it looks up each row by its whole key.
_IDS = "JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS v"
_DELETE_READY = text(
    f"DELETE r FROM {_IDS} STRAIGHT_JOIN ready AS r FORCE INDEX (PRIMARY)"
    " ON r.reserved_for = :reserved_for AND r.lane = :lane AND r.`rank` = :rank AND r.job_id = :job_id"
    " AND r.task_id = v.id"
)
_DELETE_CLAIMS = text(
    f"DELETE r FROM {_IDS} STRAIGHT_JOIN claims AS r FORCE INDEX (PRIMARY)"
    " ON r.worker_id = :worker AND r.task_id = v.id"
)


class MariadbDialect:
    """MariaDB's implementation of `Dialect`."""

    name: ClassVar[str] = "mariadb"
    begin: ClassVar[str] = "START TRANSACTION"
    one_writer: ClassVar[bool] = False
    dead_rows_linger: ClassVar[bool] = False
    leaves_its_index: ClassVar[bool] = False
    update_returning: ClassVar[bool] = False
    groups_by_jumping: ClassVar[bool] = True
    claims_at_once: ClassVar[bool] = False
    tables: ClassVar[TableMoves] = MariadbTables()
    copies: ClassVar[CopyMoves] = MariadbCopyMoves()

    def engine(self, url: str) -> AsyncEngine:
        return create_async_engine(
            url,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,  # values stay out of errors and logs
            poolclass=NullPool,  # `Database` keeps the idle connections
            connect_args={"charset": "utf8mb4"},
        )

    async def prepare(self, connection: Connection) -> None:
        watch_line(connection)
        for statement in (*_SESSION, f"SET SESSION idle_transaction_timeout = {idle_transaction_s()}"):
            await connection.exec_driver_sql(statement)

    def is_closed(self, connection: Connection) -> bool:
        driver = driver_of(connection)
        return not driver.connected or bool(getattr(driver, "_stream_broken", False))

    async def command(self, connection: Connection, sql: str) -> None:
        await connection.exec_driver_sql(sql)

    def now(self) -> ColumnElement[datetime]:
        return literal_column("SYSDATE(6)", type_=UtcTime)

    def later(self, seconds: float) -> ColumnElement[datetime]:
        return literal_column(f"SYSDATE(6) + INTERVAL {int(seconds * 1e6)} MICROSECOND", type_=UtcTime)

    def seconds(self, earlier: ColumnElement[Any], later: ColumnElement[Any]) -> ColumnElement[float]:
        return func.timestampdiff(literal_column("MICROSECOND"), earlier, later, type_=Double) * 1e-6

    def any_of(self, column: ColumnElement[Any], ids: Sequence[int]) -> ColumnElement[bool]:
        return column.in_(list(ids))

    def in_ids(self, column: ColumnElement[Any], name: str = "ids") -> ColumnElement[bool]:
        return column.in_(bindparam(name, expanding=True))

    def pack(self, ids: Sequence[Any]) -> list[Any]:
        return list(ids)

    def is_transient(self, error: BaseException) -> bool:
        codes = [step.args[0] for step in causes(error) if step.args]
        return any(isinstance(code, int) and code in TRANSIENT for code in codes)

    async def insert_rows(self, session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), ROWS_AT_ONCE):
            await session.run_many(insert(table), rows[start : start + ROWS_AT_ONCE])

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
        return await mariadb_moves.claim_ready(
            session,
            worker_id=worker_id,
            reserved_for=reserved_for,
            lane=lane,
            limit=limit,
            after=after,
            call=call,
            begins=begins,
        )

    async def sweep_queue(self, connection: Connection) -> None:
        """Do nothing: InnoDB purges deleted rows by itself."""

    async def complete_claims(self, session: Session, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
        return await mariadb_moves.complete_claims(session, worker_id, done)

    async def delete_ready(self, session: Session, stretch: QueueStretch, ids: Sequence[int]) -> None:
        await session.run(_DELETE_READY, stretch._asdict() | {"ids": json.dumps(list(ids))})

    async def delete_claims(self, session: Session, worker_id: int, ids: Sequence[int]) -> None:
        await session.run(_DELETE_CLAIMS, {"worker": worker_id, "ids": json.dumps(list(ids))})
