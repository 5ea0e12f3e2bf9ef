"""The dialect of PostgreSQL: a claim and a completion are one statement each, sent by asyncpg directly."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    String,
    Table,
    Text,
    any_,
    bindparam,
    cast,
    extract,
    func,
    insert,
    literal_column,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from aaiclick.orchestration.store.definitions.column_types import UtcTime
from aaiclick.orchestration.store.dialects import portable
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
    session_over,
    watch_line,
)
from aaiclick.orchestration.store.dialects.copy_moves import PostgresCopyMoves
from aaiclick.orchestration.store.dialects.postgres_tables import PostgresTables
from aaiclick.orchestration.store.dialects.table_moves import TableMoves

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Done
    from aaiclick.orchestration.store.session import Session

TRANSIENT = {"40001", "40P01", "55P03"}
"""SQLSTATEs: serialization failure, deadlock, lock not available."""

PLANNED_FOR_S, PLANNED_FOR_CALLS = 2.0, 50
"""A connection keeps its plans for at least this many seconds, and this many claims and completions.

A plan that is made while a table is small may use any index that contains the right column, since each index is one
page then. Once the table has grown, such a plan reads the whole index each time.
"""

COPY_FROM = 100
"""From this many rows on, COPY beats INSERT."""

# The rows of `ready` are never updated, so a locked row keeps its ctid until it is deleted here. «IS TRUE» keeps the
# planner from the index on the status: that would read all pending jobs, if there were few when the plan was made.
# The worker's row is read and not locked: heartbeats must not wait for claims. A claim that is committed after the
# recovery of its worker's session is found by the next recovery: if it was made after the session's end, it counts as
# nothing, else as a loss like any other.
_CLAIM = """
WITH live AS MATERIALIZED (
    SELECT cordoned FROM workers WHERE id = $4 AND status <> 'stopped' AND expires_at > clock_timestamp()
), picked AS MATERIALIZED (
    DELETE FROM ready WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ready WHERE (SELECT NOT cordoned FROM live) AND reserved_for = $1 AND lane = $2 {after}
        ORDER BY reserved_for, lane, rank, job_id, task_id LIMIT $3 FOR UPDATE SKIP LOCKED))
    RETURNING rank, job_id, task_id
), claimed AS (
    UPDATE tasks SET status = 'claimed', epoch = epoch + 1, worker_id = $4, claimed_at = clock_timestamp(),
        started_at = CASE WHEN id = ANY (ARRAY(SELECT task_id FROM picked ORDER BY rank, job_id, task_id LIMIT $6))
            THEN clock_timestamp() END
    WHERE id = ANY (ARRAY(SELECT task_id FROM picked)) AND status = 'pending'
    RETURNING id, epoch, job_id, group_id, name, entrypoint, kwargs, attempt, timeout_s, needs_inputs, priority,
        generation, stop_when_cut_off, cache_policy, claimed_at
), held AS (
    INSERT INTO claims (worker_id, task_id, epoch, claim_call) SELECT $4, id, epoch, $5 FROM claimed
), started AS (
    UPDATE jobs SET status = 'running', started_at = clock_timestamp()
    WHERE id = ANY (ARRAY(SELECT job_id FROM claimed)) AND (status = 'pending') IS TRUE RETURNING id, started_at
), noted AS (
    INSERT INTO events (job_id, task_id, epoch, move, status, worker_id, at)
    SELECT id, NULL, NULL, 'start', 'running', NULL, started_at FROM started
    UNION ALL SELECT job_id, id, epoch, 'claim', 'claimed', $4, claimed_at FROM claimed
)
SELECT id, epoch, job_id, group_id, name, entrypoint, kwargs, attempt, timeout_s, needs_inputs, priority,
    generation, stop_when_cut_off, cache_policy FROM claimed
UNION ALL SELECT 0, 0, 0, NULL, coalesce((SELECT status FROM workers WHERE id = $4), ''), '', 'null', 0, NULL, false, 0,
    0, true, NULL WHERE NOT EXISTS (SELECT FROM live)
"""
_CLAIM_FRONT = _CLAIM.format(after="")
_CLAIM_AFTER = _CLAIM.format(after="AND (rank, job_id, task_id) > ($7, $8, $9)")

# The ids are sorted, so `width_bucket` finds the position of each in a few steps. For a join with the unnested arrays,
# PostgreSQL expects one row, and its plan would compare each task with each row.
_COMPLETE = """
WITH moved AS (
    UPDATE tasks SET status = 'completed', result = ($4::json[])[width_bucket(id, $2::bigint[])],
        log_path = ($5::text[])[width_bucket(id, $2::bigint[])],
        completed_at = clock_timestamp(), started_at = coalesce(started_at, claimed_at)
    WHERE id = ANY ($2::bigint[]) AND epoch = ($3::int[])[width_bucket(id, $2::bigint[])] AND worker_id = $1
        AND status IN ('claimed', 'running')
    RETURNING id, job_id, group_id, dependents_count, critical, epoch, attempt, generation, claimed_at, started_at,
        completed_at, log_path, lane
), freed AS (
    DELETE FROM claims WHERE worker_id = $1 AND task_id = ANY (ARRAY(SELECT id FROM moved))
), history AS (
    INSERT INTO runs
        (task_id, epoch, attempt, generation, worker_id, claimed_at, started_at, ended_at, outcome, log_path)
    SELECT id, epoch, attempt, generation, $1, claimed_at, started_at, completed_at, 'completed', log_path FROM moved
), noted AS (
    INSERT INTO events (job_id, task_id, epoch, move, status, worker_id, at)
    SELECT job_id, id, epoch, 'complete', 'completed', $1, completed_at FROM moved
)
SELECT id, job_id, group_id, dependents_count, critical, 'completed', lane FROM moved
"""


def _as_it_is(text: str) -> str:
    return text


class PostgresDialect:
    """PostgreSQL's implementation of `Dialect`."""

    name: ClassVar[str] = "postgresql"
    begin: ClassVar[str] = "BEGIN"
    one_writer: ClassVar[bool] = False
    dead_rows_linger: ClassVar[bool] = True
    leaves_its_index: ClassVar[bool] = True
    update_returning: ClassVar[bool] = True
    groups_by_jumping: ClassVar[bool] = False
    claims_at_once: ClassVar[bool] = True
    tables: ClassVar[TableMoves] = PostgresTables()
    copies: ClassVar[CopyMoves] = PostgresCopyMoves()

    def __init__(self) -> None:
        self._planned: WeakKeyDictionary[Any, tuple[float, int]] = WeakKeyDictionary()
        """For each connection: when its plans were discarded last, and the number of calls since."""

    def engine(self, url: str) -> AsyncEngine:
        """Return the engine. JSON is not decoded: columns hold text that aaiclick encoded, here and with asyncpg."""
        return create_async_engine(
            url,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,  # values stay out of errors and logs
            poolclass=NullPool,  # `Database` keeps the idle connections
            json_deserializer=_as_it_is,
        )

    async def prepare(self, connection: Connection) -> None:
        """Set up a new connection.

        The isolation level is set because the server's default may have been changed. The time zone is not, since
        times carry theirs. The idle timeout ends a transaction whose process was paused, so that its locks do not
        outlive its session. Sequential scans are off because plans are made while tables are small, and kept while
        they grow.
        """
        watch_line(connection)
        await driver_of(connection).execute(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;"
            f" SET idle_in_transaction_session_timeout = '{idle_transaction_s()}s';"
            " SET enable_seqscan = off; SET jit = off"
        )

    def is_closed(self, connection: Connection) -> bool:
        return bool(driver_of(connection).is_closed())

    async def command(self, connection: Connection, sql: str) -> None:
        await driver_of(connection).execute(sql)

    def now(self) -> ColumnElement[datetime]:
        return func.clock_timestamp(type_=UtcTime)

    def later(self, seconds: float) -> ColumnElement[datetime]:
        return literal_column(f"clock_timestamp() + interval '{seconds:.6f} seconds'", type_=UtcTime)

    def seconds(self, earlier: ColumnElement[Any], later: ColumnElement[Any]) -> ColumnElement[float]:
        return cast(extract("epoch", later), Double) - cast(extract("epoch", earlier), Double)

    def any_of(self, column: ColumnElement[Any], ids: Sequence[int]) -> ColumnElement[bool]:
        values = bindparam(None, list(ids), type_=ARRAY(BigInteger), unique=True)
        return column == any_(values)

    def in_ids(self, column: ColumnElement[Any], name: str = "ids") -> ColumnElement[bool]:
        kind = Text() if isinstance(column.type, String) else BigInteger()
        return column == any_(bindparam(name, type_=ARRAY(kind)))

    def pack(self, ids: Sequence[Any]) -> list[Any]:
        return list(ids)

    def is_transient(self, error: BaseException) -> bool:
        return any(getattr(step, "sqlstate", None) in TRANSIENT for step in causes(error))

    async def insert_rows(self, session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) < COPY_FROM:
            await session.run_many(insert(table), rows)
            return
        columns = list(rows[0])
        driver = driver_of(session.writing)
        records = [tuple(row.values()) for row in rows]
        await driver.copy_records_to_table(table.name, columns=columns, records=records)

    async def _plan_anew(self, driver: Any) -> None:
        """Discard the connection's plans now and then.

        The planner then sees the current size of the tables, whether or not they have been analysed.
        """
        now = time.monotonic()
        since, calls = self._planned.get(driver, (now, 0))
        if calls >= PLANNED_FOR_CALLS and now - since >= PLANNED_FOR_S:
            since, calls = now, 0
            await driver.execute("DISCARD PLANS")
        self._planned[driver] = since, calls + 1

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
        await self._plan_anew(driver)
        if after is None:
            rows = await driver.fetch(_CLAIM_FRONT, reserved_for, lane, limit, worker_id, call, begins)
        else:
            rows = await driver.fetch(_CLAIM_AFTER, reserved_for, lane, limit, worker_id, call, begins, *after)
        taken = [ClaimedTask(*row) for row in rows]
        if taken and not taken[0].id:  # a row without a task says that the session is not live
            raise session_over(worker_id, taken[0].name or None)
        return taken

    async def sweep_queue(self, connection: Connection) -> None:
        """Vacuum the two hot tables: autovacuum runs once a minute at most, which leaves up to a million dead rows."""
        await driver_of(connection).execute("VACUUM (SKIP_LOCKED) ready, claims")

    async def complete_claims(self, session: Session, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
        """Complete the tasks; the arrays are ordered by id, and so the rows are locked in that order."""
        items = sorted(done, key=lambda item: item.task_id)
        driver = driver_of(session.writing)
        await self._plan_anew(driver)
        rows = await driver.fetch(
            _COMPLETE,
            worker_id,
            [item.task_id for item in items],
            [item.epoch for item in items],
            [item.result_json for item in items],
            [item.log_path for item in items],
        )
        return [EndedTask(*row) for row in rows]

    async def delete_ready(self, session: Session, stretch: QueueStretch, ids: Sequence[int]) -> None:
        await portable.delete_ready(session, stretch, ids)

    async def delete_claims(self, session: Session, worker_id: int, ids: Sequence[int]) -> None:
        await portable.delete_claims(session, worker_id, ids)
