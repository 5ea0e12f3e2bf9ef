"""Run clickhouse-connect's blocking clients from coroutines: each call has a client and a thread of its own.

After an error, the next answer of an embedded engine's client may begin with rows of the failed query (pitfall T30):
such a client is used again only once its answers are its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from aaiclick.data.clients import times
from aaiclick.data.clients.client_errors import in_our_words, unreachable_is
from aaiclick.data.clients.contract import Rows, Settings
from aaiclick.data.clients.packing import packed
from aaiclick.data.clients.tables import ALONE, Tables
from aaiclick.data.sql.quoting import name as quoted
from aaiclick.errors import AaiclickError, DataUnreachable

if TYPE_CHECKING:
    import pyarrow as pa
    from clickhouse_connect.driver.client import Client
    from clickhouse_connect.driver.query import QueryResult

T = TypeVar("T")

AT_ONCE = 16
"""How many statements of one client run at once; others wait for a thread."""

THREADS = "aaiclick-data"
PIECE_BYTES = 4 * 1024 * 1024
PIECES_AHEAD = 4

STOP_EVERY_S = 0.05
STOPPED_S_MAX = 10.0
"""How long a cancelled statement is told to end, in seconds; after that the caller goes on."""

_of_the_parent: list[object] = []


def always(client: Client) -> bool:
    """Keep the client of a server: an error concerns one statement only."""
    return True


def once_clean(client: Client) -> bool:
    """Return whether an embedded engine's client gives its own answers: rows of a failed query come with the first.

    A new client costs 8 ms, these two questions 1 ms.
    """
    return client.ping() or client.ping()


class PooledClient:
    """Runs statements on threads, each with a client of its own."""

    def __init__(
        self,
        connect: Callable[[], Client],
        *,
        keep_after_error: Callable[[Client], bool],
        tagged_by: str = "log_comment",
        tables: Tables = ALONE,
    ) -> None:
        """Prepare the pool. In ClickHouse, statements are identified by a unique value of the setting `tagged_by`.

        `keep_after_error` is called after a statement that failed; a client for which it returns False is closed.
        """
        self._connect = connect
        self.tables = tables
        self._tagged_by = tagged_by
        self._keep_after_error = keep_after_error
        self._idle: list[_Tagged] = []
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix=THREADS)
        self._closed = False

    # ------------------------------------------------------------ verbs

    async def command(self, sql: str, settings: Settings | None = None) -> None:
        await self._run(lambda client: client.command(sql, settings=_plain(settings)))

    async def rows(self, sql: str, settings: Settings | None = None) -> Rows:
        return await self._run(lambda client: _rows(client, sql, settings))

    async def make(self, sql: str, look: str, settings: Settings | None = None) -> Rows:
        def both(client: Client) -> Rows:
            client.command(sql, settings=_plain(settings))
            with unreachable_is("unseen"):
                return _rows(client, look, None)

        return await self._run(both)

    def rows_now(self, sql: str, settings: Settings | None = None) -> Rows:
        with in_our_words(), self._lent(lambda: False, _Call()) as client:
            return _rows(client, sql, settings)

    async def arrow(self, sql: str, settings: Settings | None = None) -> pa.Table:
        return await self._run(lambda client: _arrow(client, sql, settings))

    async def batches(self, sql: str, settings: Settings | None = None) -> AsyncGenerator[pa.RecordBatch, None]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[pa.RecordBatch | None] = asyncio.Queue()
        room = threading.Semaphore(PIECES_AHEAD)
        left = threading.Event()

        def produce(client: Client) -> None:
            kinds = _described(client, sql)  # before the stream: a client answers one statement at a time
            with client.query_arrow_stream(sql, settings=_plain(settings)) as stream:
                for batch in stream:
                    room.acquire()
                    if left.is_set():
                        return
                    loop.call_soon_threadsafe(queue.put_nowait, times.as_meant(batch, kinds))

        producing = asyncio.ensure_future(self._run(produce, spoils=left.is_set))
        producing.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (batch := await queue.get()) is not None:
                yield batch
                room.release()
            await producing
        finally:
            left.set()
            room.release()
            producing.cancel()
            await asyncio.wait([producing])

    async def save(
        self, sql: str, file_format: str, path: str, settings: Settings | None = None, packing: str = ""
    ) -> int:
        return await self._run(lambda client: _save(client, sql, file_format, path, settings, packing))

    async def insert(self, table: str, data: pa.Table, *, token: str | None = None) -> int:
        return await self._run(lambda client: _insert(client, table, data, token))

    async def close(self) -> None:
        """Wait for running statements, and close the clients."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """Like `close`, but it blocks."""
        self._closed = True
        self._threads.shutdown()
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.client.close()

    def become_copy(self) -> None:
        """Replace clients and threads in a forked process: the connections are the parent's, the threads do not exist.

        The old ones are kept, because to free them would close the parent's connections.
        """
        _of_the_parent.append((self._threads, self._idle))
        self._lock, self._idle = threading.Lock(), []
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix=THREADS)

    # ------------------------------------------------------------ lending

    async def _run(self, work: Callable[[Client], T], *, spoils: Callable[[], bool] = lambda: False) -> T:
        call = _Call()

        def on_thread() -> T:
            with in_our_words(), self._lent(spoils, call) as client:
                return work(client)

        try:
            running = self._threads.submit(on_thread)
        except RuntimeError:  # the threads are shut down
            raise DataUnreachable(cause="the client is closed", got="unsent") from None
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._stop, call, running)
            raise

    @contextmanager
    def _lent(self, spoils: Callable[[], bool], call: _Call) -> Iterator[Client]:
        with self._lock:
            if self._closed and not self._idle:
                raise DataUnreachable(cause="the client is closed", got="unsent")
            lent = self._idle.pop() if self._idle else None
        if lent is None:
            lent = self._new()
        with self._lock:
            call.lent = lent
        try:
            if call.is_unwanted:
                raise DataUnreachable(cause="it was cancelled", got="unsent")
            yield lent.client
        except BaseException:
            self._return(lent, call, keep=not call.is_unwanted and self._keep_after_error(lent.client))
            raise
        self._return(lent, call, keep=not spoils())

    def _new(self) -> _Tagged:
        with unreachable_is("unsent"):
            client = self._connect()
            tag = f"aaiclick-{uuid4().hex}"
            client.set_client_setting(self._tagged_by, tag)
        return _Tagged(client, tag)

    def _return(self, lent: _Tagged, call: _Call, *, keep: bool) -> None:
        with self._lock:
            call.lent = None
            if keep and not self._closed and not call.is_unwanted:  # a KILL under way could hit its next statement
                self._idle.append(lent)
                return
        lent.client.close()

    # ------------------------------------------------------------ stopping

    def _stop(self, call: _Call, running: Future[Any]) -> None:
        """End a cancelled statement in ClickHouse; KILL is repeated, as the statement may not have begun there yet."""
        given_up_at = time.monotonic() + STOPPED_S_MAX
        with self._lock:
            call.is_unwanted = True
        while not wait([running], STOP_EVERY_S).done and time.monotonic() < given_up_at:
            with self._lock:
                tag = call.lent.tag if call.lent is not None else None
            if tag is not None:
                self._kill(tag)

    def _kill(self, tag: str) -> None:
        by = self._tagged_by if self._tagged_by == "query_id" else f"Settings['{self._tagged_by}']"
        with suppress(AaiclickError), in_our_words():  # an unreachable server runs nothing that could be stopped
            client = self._connect()
            try:
                client.command(f"KILL QUERY WHERE {by} = '{tag}' ASYNC")
            finally:
                client.close()


@dataclass(frozen=True)
class _Tagged:
    """A client, and the tag by which its statements are known in ClickHouse."""

    client: Client
    tag: str


class _Call:
    """One call: its client while it has one, and whether it was cancelled."""

    lent: _Tagged | None = None
    is_unwanted = False


def _plain(settings: Settings | None) -> dict[str, Any] | None:
    return None if settings is None else dict(settings)


def _rows(client: Client, sql: str, settings: Settings | None) -> Rows:
    answer = _asked(client, sql, settings)
    if not answer.column_names:  # without rows, the embedded engine returns no columns either
        names, types = client.query(f"DESCRIBE TABLE ({sql})").result_columns[:2]
        return Rows(list(names), list(types), [[] for _ in names])
    types = [kind.name for kind in answer.column_types]
    with_times = times.with_zones
    if any(map(times.has_nanoseconds, types)):
        answer, with_times = _asked(client, sql, settings, times.AS_NUMBERS), times.from_numbers
    if any(map(times.may_have_zones, types)):
        types = _described(client, sql)
    columns = answer.result_columns or [[] for _ in types]
    return Rows(list(answer.column_names), types, [with_times(*each) for each in zip(columns, types, strict=True)])


def _asked(client: Client, sql: str, settings: Settings | None, formats: dict[str, str] | None = None) -> QueryResult:
    """Return the answer with times as their types say: those of a column without a zone are naive."""
    return client.query(sql, settings=_plain(settings), query_formats=formats, column_oriented=True, tz_mode="schema")


def _described(client: Client, sql: str) -> list[str]:
    """Return the types of the columns of a query."""
    return list(client.query(f"DESCRIBE TABLE ({sql})").result_columns[1])


def _arrow(client: Client, sql: str, settings: Settings | None) -> pa.Table:
    table = client.query_arrow(sql, settings=_plain(settings))
    return times.as_meant(table, _described(client, sql)) if times.is_doubtful(table.schema) else table


def _save(client: Client, sql: str, file_format: str, path: str, settings: Settings | None, packing: str) -> int:
    with open(path, "xb") as file:
        try:
            answer = client.raw_stream(sql, fmt=file_format, settings=_plain(settings))
            with packed(file, packing) as into, answer as stream:
                while piece := stream.read(PIECE_BYTES):
                    into.write(piece)
        except BaseException:
            os.unlink(path)  # an incomplete file is removed
            raise
        return file.tell()


def _insert(client: Client, table: str, data: pa.Table, token: str | None) -> int:
    """Insert an Arrow table; without a token, with a new one.

    So equal rows of another call are inserted again, while a request that is sent twice inserts its rows once.
    """
    import pyarrow as pa  # here, to keep start-up light

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    client.raw_insert(
        quoted(table),
        [quoted(name) for name in data.column_names],
        sink.getvalue().to_pybytes(),
        settings={"insert_deduplication_token": token or uuid4().hex},
        fmt="ArrowStream",
        compression=None,
    )
    return int(data.num_rows)
