"""What the store asks of a database, where the three differ. One file each answers."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from sqlalchemy import ColumnElement, Table

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
    """Where tasks of one job and one priority stand in the ready queue: the key of their rows, up to the task."""

    reserved_for: int
    lane: int
    rank: int
    job_id: int


class ReadyKey(NamedTuple):
    """A place in one lane of the ready queue."""

    rank: int
    job_id: int
    task_id: int


class ClaimedTask(NamedTuple):
    """A task that was just claimed."""

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


class EndedTask(NamedTuple):
    """A task that just ended, with what the rest of the graph must know of it."""

    id: int
    job_id: int
    group_id: int | None
    dependents_count: int
    critical: bool
    status: str


class EndedClaim(NamedTuple):
    """A claim that ends, and why."""

    worker_id: int
    task_id: int
    epoch: int
    outcome: RunOutcome


class Dialect(Protocol):
    """The answers of one database."""

    name: ClassVar[str]
    begin: ClassVar[str]
    one_writer: ClassVar[bool]
    """Writers exclude each other, so that waiting in line at home beats waiting at the database."""
    dead_rows_linger: ClassVar[bool]
    """A scan steps over rows that were deleted lately, so that a claim had better not start at the front."""
    leaves_its_index: ClassVar[bool]
    """For a job's rows in the order of their ids it may walk along the ids of all; a range of pairs prevents it."""
    update_returning: ClassVar[bool]
    claims_at_once: ClassVar[bool]
    """`claim_ready` is one statement that starts the jobs too, and so needs no BEGIN and COMMIT around it."""
    tables: ClassVar[TableMoves]
    """What is asked about references to tables."""

    def engine(self, url: str) -> Engine:
        """What connects to this database; its connections commit each statement by itself."""

    async def prepare(self, connection: Connection) -> None:
        """Set up a new connection: isolation, time zone, durability."""

    def is_closed(self, connection: Connection) -> bool:
        """Whether the connection is known to be over, without asking the server."""

    async def command(self, connection: Connection, sql: str) -> None:
        """BEGIN, COMMIT or ROLLBACK, by the shortest way."""

    def now(self) -> ColumnElement[datetime]:
        """The database's time at this instant, not at the transaction's start (pitfall T8)."""

    def later(self, seconds: float) -> ColumnElement[datetime]:
        """The database's time so many seconds from this instant."""

    def seconds(self, earlier: ColumnElement[Any], later: ColumnElement[Any]) -> ColumnElement[float]:
        """The seconds from one time to another."""

    def any_of(self, column: ColumnElement[Any], ids: Sequence[int]) -> ColumnElement[bool]:
        """`column` is one of `ids`: one statement, however many there are."""

    def in_ids(self, column: ColumnElement[Any], name: str = "ids") -> ColumnElement[bool]:
        """`any_of` for a statement that is built once: ids or names come later, as the value `name`, from `pack`."""

    def pack(self, ids: Sequence[Any]) -> Any:
        """Ids or names as the value that `in_ids` expects."""

    def is_transient(self, error: BaseException) -> bool:
        """A deadlock, a lock wait that ended, a serialization failure: the same again may well pass."""

    async def insert_rows(self, session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert many rows as fast as this database can."""

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
        """Take up to `limit` ready tasks of one lane.

        They are removed from `ready` and moved to CLAIMED, with claim and event; the first `begins` of them are noted
        as begun. Refused if the worker's session is not live, by the database's time, when the statement looks; its row
        is not locked.
        """

    async def sweep_queue(self, connection: Connection) -> None:
        """Clear away the rows that claims have taken out of the queue, where the database leaves them lying about."""

    async def complete_claims(self, session: Session, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
        """Move to COMPLETED what passes the fence, with result, run and event; gives what moved."""

    async def delete_ready(self, session: Session, stretch: QueueStretch, ids: Sequence[int]) -> None:
        """Delete these tasks' rows of `ready`, and wait for no other row."""

    async def delete_claims(self, session: Session, worker_id: int, ids: Sequence[int]) -> None:
        """Delete this worker's claims of these tasks, and wait for no other row."""


def session_over(worker_id: int, status: str | None) -> SessionOver:
    """Why a worker in this state, or one that nobody knows, may not claim."""
    over = status in (None, WorkerStatus.STOPPED)
    cause = "nobody knows it" if status is None else "it was ended" if over else "its time is up"
    return SessionOver(worker_id=worker_id, cause=cause, swept=over)


def idle_transaction_s() -> int:
    """How long a transaction may be left alone by its process: about as long as a session lives."""
    return max(30, math.ceil(settings().session_s))


def driver_of(connection: Connection) -> Any:
    """The driver's own connection, for the few statements where every microsecond counts."""
    pooled = connection.sync_connection
    assert pooled is not None, "the connection is closed"
    return pooled.connection.driver_connection


SILENT_S_MAX, PROBE_EVERY_S, PROBES = 60, 10, 3


def watch_line(connection: Connection) -> None:
    """Let the system find out that the other end is gone without a word, in about a minute rather than in fifteen."""
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
        if hasattr(socket, option):  # not every system has all of them
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def causes(error: BaseException) -> list[BaseException]:
    """The error, what SQLAlchemy wrapped, and what caused it."""
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        step = left.pop()
        if step is not None and step not in found:
            found.append(step)
            left += [getattr(step, "orig", None), step.__cause__]
    return found
