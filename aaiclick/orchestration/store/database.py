"""The database of the state: its connections, its dialect, and transactions that are retried if they may succeed."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeVar

from aaiclick.backoff import one_line
from aaiclick.config import settings
from aaiclick.errors import AaiclickError, BackendUnreachable, TransientStoreError
from aaiclick.orchestration.rules.lanes import KnownLanes
from aaiclick.orchestration.store.connecting import in_our_words
from aaiclick.orchestration.store.dialects import dialect_of
from aaiclick.orchestration.store.dialects.contract import Connection, Dialect, Engine
from aaiclick.orchestration.store.lanes import LanesWanted, intern_lanes
from aaiclick.orchestration.store.schema import ensure_local, require_current
from aaiclick.orchestration.store.session import Session
from aaiclick.urls import mask_url

log = logging.getLogger("aaiclick")

T = TypeVar("T")

ROLLBACK_S_MAX = GOODBYE_S_MAX = 5.0
GOODBYE_S = 0.2
"""Seconds that a caller waits for a connection to close; a slower close goes on in the background."""

ROOM_S_MAX = 30.0
"""Seconds that a caller waits while all connections that this process may open are in use."""

TRIES = 10
"""How often a transaction is tried before a transient failure, such as a deadlock, is raised to the caller."""


class Database:
    """The database that holds the state. Each event loop has its own: connections belong to their loop."""

    def __init__(self, url: str, engine: Engine, dialect: Dialect) -> None:
        self.url = url
        self.engine = engine
        self.dialect = dialect
        self.started_jobs: set[int] = set()
        """Jobs known to have left PENDING. No job returns to PENDING, so a claim need not check these again."""
        self.lanes = KnownLanes()
        self.installation = ""
        """The name of the installation; empty until it was read."""
        self.on_hints: Callable[[Iterable[str]], None] = _unheard
        """Called after a commit with the hints of its session, if it has any."""
        self.on_answer: list[Callable[[], None]] = []
        """Called after each `read`, `write_one` and `transact` that succeeded."""
        self._writer = asyncio.Lock()
        self._idle_max = settings().sql_pool_size
        self._room_max = self._idle_max + settings().sql_max_overflow
        self._room = asyncio.Semaphore(self._room_max)
        self._idle: list[Connection] = []
        """Open connections that no caller uses. No other pool keeps any: what is closed here is closed."""
        self._ending: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, url: str, *, check: bool = True) -> Database:
        """Connect, and create a missing SQLite file first.

        With `check`, raise SchemaError unless the schema is the one that this code needs.
        """
        dialect = dialect_of(url)
        await ensure_local(url)
        with in_our_words(url):
            database = cls(url, dialect.engine(url), dialect)
        if check:
            try:
                async with database.connection() as connection:
                    await require_current(connection)
            except BaseException:
                await database.close()
                raise
        return database

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.shield(_discard(idle))
        if self._ending:
            await asyncio.wait(self._ending)
        await self.engine.dispose()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Yield a connection that commits each statement by itself.

        Callers queue here when every connection is in use; SQLAlchemy's pool cannot see the connections kept idle
        here. At the end the connection is kept for the next caller; it is closed if it may be unusable, as after a
        failed statement, or if enough are kept.
        """
        await self._enter()
        try:
            connection = await self._take()
            try:
                yield connection
            except AaiclickError:  # raised by aaiclick: the connection works, and `_begun` rolled back
                await self._keep(connection)
                raise
            except BaseException as error:
                lost = self._is_lost(connection)
                await self._drop(connection)
                if lost and isinstance(error, Exception):
                    raise BackendUnreachable(url=mask_url(self.url), cause=one_line(error)) from error
                raise
            await self._keep(connection)
        finally:
            self._room.release()

    async def _enter(self) -> None:
        if not self._room.locked():
            await self._room.acquire()
            return
        try:
            async with asyncio.timeout(ROOM_S_MAX):
                await self._room.acquire()
        except TimeoutError:
            cause = f"all {self._room_max} connections of this process were in use for {ROOM_S_MAX:.0f} seconds"
            raise BackendUnreachable(url=mask_url(self.url), cause=cause) from None

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not self._is_lost(connection):
                return connection
            await self._drop(connection)
        with in_our_words(self.url):
            return await self._connect()

    async def _keep(self, connection: Connection) -> None:
        """Keep the connection for the next caller; close it if enough are kept already, or if it is lost.

        It may be lost although the caller raised nothing: a caller may go on without the answer to its statement.
        """
        if len(self._idle) < self._idle_max and not self._is_lost(connection):
            self._idle.append(connection)
        else:
            await self._drop(connection)

    async def _drop(self, connection: Connection) -> None:
        """Close the connection; if it is lost, close the idle ones too.

        A server that ended this one has ended those as well, and each would cost a caller a failed statement.
        """
        dropped = [connection]
        if self._is_lost(connection):
            dropped += self._idle
            self._idle.clear()
        await self._end(dropped)

    async def _end(self, connections: Iterable[Connection]) -> None:
        """Close these connections, even if the caller is cancelled once more meanwhile.

        It waits for GOODBYE_S only: closing takes long where the network is silent, and the caller has waited already.
        """
        ending = asyncio.create_task(_discard(connections))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        await asyncio.wait([ending], timeout=GOODBYE_S)

    def _is_lost(self, connection: Connection) -> bool:
        return connection.invalidated or self.dialect.is_closed(connection)

    async def _connect(self) -> Connection:
        connection = await self.engine.connect()
        try:
            await self.dialect.prepare(connection)
        except BaseException:
            await self._end([connection])
            raise
        return connection

    async def read(self, work: Callable[[Session], Awaitable[T]], *, stale_ok: bool = False) -> T:
        """Run statements that only read; each sees what is committed when it runs. The session refuses to write.

        `stale_ok`: slightly old data will do, such as that of a replica. It changes nothing yet.
        """
        async with self.connection() as connection:
            answer = await work(Session(connection, self.dialect, reads_only=True, lanes=self.lanes))
        self._answered()
        return answer

    async def write_one(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Run a write without a transaction: each statement commits by itself.

        The first statement has to do all that must happen together. After a transient failure, `work` is run again.
        """
        return await self._insist(work, self._not_begun)

    async def transact(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Run `work` in one transaction; after a transient failure, run all of it again in a new one."""
        return await self._insist(work, self._transaction)

    async def _insist(
        self, work: Callable[[Session], Awaitable[T]], opened: Callable[[], AbstractAsyncContextManager[Session]]
    ) -> T:
        """Run `work`; again after a transient failure, and after making lanes that it wants: none is wanted twice."""
        attempt = 1
        while True:
            try:
                async with opened() as session:
                    answer = await work(session)
                if session.hints:
                    self.on_hints(session.hints)
                self._answered()
                return answer
            except LanesWanted as wanted:
                await self.transact(partial(intern_lanes, needs=wanted.needs))
            except Exception as error:
                if not self.dialect.is_transient(error):
                    raise
                if attempt == TRIES:
                    raise TransientStoreError(attempts=TRIES, cause=one_line(error)) from error
                await asyncio.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311 (no secret)
                attempt += 1

    def _answered(self) -> None:
        for hear in self.on_answer:
            hear()

    @asynccontextmanager
    async def _not_begun(self) -> AsyncIterator[Session]:
        async with self.connection() as connection:
            yield Session(connection, self.dialect, lanes=self.lanes)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Session]:
        if self.dialect.one_writer:
            async with self._writer, self.connection() as connection, self._begun(connection) as session:
                yield session
        else:
            async with self.connection() as connection, self._begun(connection) as session:
                yield session

    @asynccontextmanager
    async def _begun(self, connection: Connection) -> AsyncIterator[Session]:
        await self.dialect.command(connection, self.dialect.begin)
        try:
            yield Session(connection, self.dialect, lanes=self.lanes)
            await self.dialect.command(connection, "COMMIT")
        except BaseException as error:
            if self.dialect.one_writer or isinstance(error, AaiclickError):  # else `connection` closes it
                await asyncio.shield(self._rollback(connection))
            raise

    async def _rollback(self, connection: Connection) -> None:
        """Roll back; invalidate the connection if that fails, or takes longer than ROLLBACK_S_MAX."""
        try:
            async with asyncio.timeout(ROLLBACK_S_MAX):
                await self.dialect.command(connection, "ROLLBACK")
        except Exception:
            await connection.invalidate()


def _unheard(hints: Iterable[str]) -> None:
    """Ignore the hints: nobody listens for them."""


async def _discard(connections: Iterable[Connection]) -> None:
    """Close connections whose state is unknown."""
    await asyncio.gather(*map(_throw_away, connections))


async def _throw_away(connection: Connection) -> None:
    try:
        async with asyncio.timeout(GOODBYE_S_MAX):
            await connection.invalidate()
        await connection.close()
    except Exception as error:  # harmless: the connection is not used again
        log.debug("a connection was not closed cleanly: %s", one_line(error))
