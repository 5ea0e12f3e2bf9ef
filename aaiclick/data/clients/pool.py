"""clickhouse-connect's blocking clients behind coroutines: one for each call under way, on a thread.

The next answer of an embedded engine's client after an error may begin with rows of the query that failed (pitfall
T30): such a client is used again once its answers are its own.
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
"""Statements of one process under way at a time; others wait for a thread."""

THREADS = "aaiclick-data"
PIECE_BYTES = 4 * 1024 * 1024
PIECES_AHEAD = 4

STOP_EVERY_S = 0.05
STOPPED_S_MAX = 10.0
"""How long a statement that nobody waits for any more is told to end; whoever cancelled it goes on then."""

_of_the_parent: list[object] = []


def always(client: Client) -> bool:
    """Of a server: an error concerns the statement alone."""
    return True


def once_clean(client: Client) -> bool:
    """Whether an embedded engine's client gives its own answers: what is left of a failed query goes with the first.

    A new client costs 8 ms, these two questions 1 ms.
    """
    return client.ping() or client.ping()


class PooledClient:
    """Statements on threads, each with a client of its own."""

    def __init__(
        self,
        connect: Callable[[], Client],
        *,
        keep_after_error: Callable[[Client], bool],
        tagged_by: str = "log_comment",
        tables: Tables = ALONE,
    ) -> None:
        """A statement can be told from others in ClickHouse by the setting that it is tagged by.

        `keep_after_error` is asked after a statement that failed, and a client that is not kept is closed.
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
            kinds = _described(client, sql)  # before: a client answers one thing at a time
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
        """Wait for what is under way, and close."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """`close`, blocking."""
        self._closed = True
        self._threads.shutdown()
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.client.close()

    def become_copy(self) -> None:
        """In a process that was forked: what a client is connected to is its parent's, and its threads are not here.

        That is left alone, and kept: it would be closed by whoever forgets it.
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
        except RuntimeError:  # no thread takes anything any more
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
            if keep and not self._closed and not call.is_unwanted:  # it may be killed once more
                self._idle.append(lent)
                return
        lent.client.close()

    # ------------------------------------------------------------ stopping

    def _stop(self, call: _Call, running: Future[Any]) -> None:
        """End a statement where it runs; again until it has ended, for it may only be on its way there."""
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
        with suppress(AaiclickError), in_our_words():  # who cannot be reached runs nothing that could be stopped
            client = self._connect()
            try:
                client.command(f"KILL QUERY WHERE {by} = '{tag}' ASYNC")
            finally:
                client.close()


@dataclass(frozen=True)
class _Tagged:
    """A client, and what its statements are known by in ClickHouse."""

    client: Client
    tag: str


class _Call:
    """One call: the client that it has at the moment, and whether nobody waits for it any more."""

    lent: _Tagged | None = None
    is_unwanted = False


def _plain(settings: Settings | None) -> dict[str, Any] | None:
    return None if settings is None else dict(settings)


def _rows(client: Client, sql: str, settings: Settings | None) -> Rows:
    answer = _asked(client, sql, settings)
    if not answer.column_names:  # without a row, the embedded engine tells no columns either
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
    """The answer with times as their types say it: of a column without a zone, without one."""
    return client.query(sql, settings=_plain(settings), query_formats=formats, column_oriented=True, tz_mode="schema")


def _described(client: Client, sql: str) -> list[str]:
    """The types of the columns of an answer."""
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
            os.unlink(path)  # half a file is none
            raise
        return file.tell()


def _insert(client: Client, table: str, data: pa.Table, token: str | None) -> int:
    """Without a token, one of its own: the same rows again are new rows, and a request sent twice is one."""
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
