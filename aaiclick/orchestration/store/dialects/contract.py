"""The contract of a dialect: everything in which the three databases differ, and the rows that its methods return."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from sqlalchemy import Column, ColumnElement, Table

from aaiclick.config import settings
from aaiclick.errors import SessionOver
from aaiclick.orchestration.rules.states import RunOutcome, WorkerStatus
from aaiclick.orchestration.store.dialects.table_moves import TableMoves
from aaiclick.orchestration.store.inline import InlineConnection, InlineEngine

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from aaiclick.orchestration.models import Done
    from aaiclick.orchestration.store.session import Session


Connection: TypeAlias = "AsyncConnection | InlineConnection"
Engine: TypeAlias = "AsyncEngine | InlineEngine"


class QueueStretch(NamedTuple):
    """The part of the ready queue with the tasks of one lane, priority and job: the key of `ready` without the task."""

    reserved_for: int
    lane: int
    rank: int
    job_id: int


class ReadyKey(NamedTuple):
    """The position of a task within one lane of the ready queue."""

    rank: int
    job_id: int
    task_id: int


class ClaimedTask(NamedTuple):
    """A task that was just claimed, with what its run needs."""

    id: int
    epoch: int
    job_id: int
    group_id: int | None
    name: str
    entrypoint: str
    kwargs: str
    attempt: int
    timeout_s: float | None
    needs_inputs: bool
    priority: int
    generation: int
    stop_when_cut_off: bool
    cache_policy: str | None


class EndedTask(NamedTuple):
    """A task that just ended, with the facts that its ripple needs."""

    id: int
    job_id: int
    group_id: int | None
    dependents_count: int
    critical: bool
    status: str


class EndedClaim(NamedTuple):
    """A claim that ends, and the outcome of its run."""

    worker_id: int
    task_id: int
    epoch: int
    outcome: RunOutcome


class CopyMoves(Protocol):
    """What copies of whole tables need."""

    def in_byte_order(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return the column, compared and sorted as its bytes are, which is the same on every database."""

    def as_in_sqlite(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return the column as SQLite stores it: times and JSON as texts, flags as 0 and 1."""

    async def count_on(self, session: Session, column: Column[int]) -> None:
        """Let numbers that the database gives to new rows go on behind the largest that is there."""


class Dialect(Protocol):
    """How one database does what the store needs."""

    name: ClassVar[str]
    begin: ClassVar[str]
    one_writer: ClassVar[bool]
    """Only one transaction can write at a time, so the writers of a process queue in the process itself."""
    dead_rows_linger: ClassVar[bool]
    """A scan reads rows that were deleted lately, so a claim should not start at the front of the queue."""
    leaves_its_index: ClassVar[bool]
    """For a job's tasks ordered by id, the planner may scan the primary key of all tasks instead of (job_id, id).

    A comparison of (job_id, id) as a pair prevents it.
    """
    update_returning: ClassVar[bool]
    groups_by_jumping: ClassVar[bool]
    """GROUP BY the first columns of a key jumps in the index from one group to the next, without reading the rest.

    The others read all rows then, and jump in a recursive query, which this one cannot.
    """
    claims_at_once: ClassVar[bool]
    """`claim_ready` is one statement that also starts the jobs, so it needs no BEGIN and COMMIT."""
    tables: ClassVar[TableMoves]
    """The statements about references to tables."""
    copies: ClassVar[CopyMoves]
    """The statements about copies of whole tables."""

    def engine(self, url: str) -> Engine:
        """Return an engine for this database; its connections are in autocommit mode."""

    async def prepare(self, connection: Connection) -> None:
        """Set up a new connection: isolation, time zone, durability."""

    def is_closed(self, connection: Connection) -> bool:
        """Return whether the connection is known to be closed, without a round trip to the server."""

    async def command(self, connection: Connection, sql: str) -> None:
        """Send BEGIN, COMMIT or ROLLBACK in the fastest way."""

    def now(self) -> ColumnElement[datetime]:
        """Return an expression for the database's current time, not that of the transaction's start (pitfall T8)."""

    def later(self, seconds: float) -> ColumnElement[datetime]:
        """Return an expression for the database's current time plus `seconds`."""

    def seconds(self, earlier: ColumnElement[Any], later: ColumnElement[Any]) -> ColumnElement[float]:
        """Return an expression for the seconds from one time to another."""

    def any_of(self, column: ColumnElement[Any], ids: Sequence[int]) -> ColumnElement[bool]:
        """Return the condition that `column` is one of `ids`, however many there are."""

    def in_ids(self, column: ColumnElement[Any], name: str = "ids") -> ColumnElement[bool]:
        """Return the same for a statement that is built once: the parameter `name` takes ids or names from `pack`."""

    def pack(self, ids: Sequence[Any]) -> Any:
        """Return ids or names as the value that the parameter of `in_ids` takes."""

    def is_transient(self, error: BaseException) -> bool:
        """Return whether a retry may pass: the error is a deadlock, a lock timeout or a serialization failure."""

    async def insert_rows(self, session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows in the fastest way of this database; all have the same columns in the same order."""

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
        """Claim up to `limit` ready tasks of one lane, from the front or after `after`.

        They are deleted from `ready` and moved to CLAIMED, with a row in `claims` and an event; the first `begins` of
        them also get their `started_at`. Nothing is claimed by a cordoned worker, nor if the worker's session is not
        live by the database's time. SessionOver is raised in the second case; MariaDB may return an empty list instead,
        and raise at one of the next calls. The worker's row is read and not locked.
        """

    async def sweep_queue(self, connection: Connection) -> None:
        """Clean up the rows that claims have deleted from the queue, where the database keeps dead rows."""

    async def complete_claims(self, session: Session, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
        """Move the tasks whose reports pass the fence to COMPLETED; return these.

        Their results, runs and events are written, and their rows in `claims` deleted.
        """

    async def delete_ready(self, session: Session, stretch: QueueStretch, ids: Sequence[int]) -> None:
        """Delete the rows of these tasks in `ready` without waiting for locks on other rows."""

    async def delete_claims(self, session: Session, worker_id: int, ids: Sequence[int]) -> None:
        """Delete this worker's claims of these tasks without waiting for locks on other rows."""


def session_over(worker_id: int, status: str | None) -> SessionOver:
    """Return the error for a claim by a worker whose session is not live; `status` None: the worker has no row."""
    over = status in (None, WorkerStatus.STOPPED)
    cause = "nobody knows it" if status is None else "it was ended" if over else "its session has expired"
    return SessionOver(worker_id=worker_id, cause=cause, swept=over)


def idle_transaction_s() -> int:
    """Return how many seconds a transaction may stay idle: as long as a worker's session lives, at least 30."""
    return max(30, math.ceil(settings().session_s))


def driver_of(connection: Connection) -> Any:
    """Return the driver's own connection, for the statements where SQLAlchemy's overhead matters."""
    pooled = connection.sync_connection
    assert pooled is not None, "the connection is closed"
    return pooled.connection.driver_connection


SILENT_S_MAX, PROBE_EVERY_S, PROBES = 60, 10, 3


def watch_line(connection: Connection) -> None:
    """Set TCP keep-alive so that a silently lost connection is noticed after about one minute, not after fifteen."""
    transport = getattr(driver_of(connection), "_transport", None)
    line = None if transport is None else transport.get_extra_info("socket")
    if line is None or line.family not in (socket.AF_INET, socket.AF_INET6):
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", SILENT_S_MAX - PROBES * PROBE_EVERY_S),
        ("TCP_KEEPINTVL", PROBE_EVERY_S),
        ("TCP_KEEPCNT", PROBES),
        ("TCP_USER_TIMEOUT", SILENT_S_MAX * 1000),
    ):
        if hasattr(socket, option):  # some systems lack some of these options
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def causes(error: BaseException) -> list[BaseException]:
    """Return the error, the driver's errors that SQLAlchemy wrapped, and all their causes."""
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        step = left.pop()
        if step is not None and step not in found:
            found.append(step)
            left += [getattr(step, "orig", None), step.__cause__]
    return found
