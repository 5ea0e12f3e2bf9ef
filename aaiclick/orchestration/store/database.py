"""The connection to the state: an engine, its dialect, and transactions that are tried again when they may pass."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from aaiclick.backoff import one_line
from aaiclick.config import settings
from aaiclick.errors import AaiclickError, BackendUnreachable, TransientStoreError
from aaiclick.orchestration.store.connecting import in_our_words
from aaiclick.orchestration.store.dialects import dialect_of
from aaiclick.orchestration.store.dialects.contract import Connection, Dialect, Engine
from aaiclick.orchestration.store.schema import ensure_local, require_current
from aaiclick.orchestration.store.session import Session
from aaiclick.urls import mask_url

log = logging.getLogger("aaiclick")

T = TypeVar("T")

ROLLBACK_S_MAX = GOODBYE_S_MAX = 5.0
GOODBYE_S = 0.2
"""So long a caller that has failed waits for its connection to end; the rest of a longer goodbye goes on beside."""

ROOM_S_MAX = 30.0
"""So long a caller waits while all connections that this process may open are in use."""

TRIES = 10
"""How often a transaction that met a deadlock is tried before the caller hears of it."""


class Database:
    """The state's database. One for each event loop: connections belong to the loop that made them."""

    def __init__(self, url: str, engine: Engine, dialect: Dialect) -> None:
        self.url = url
        self.engine = engine
        self.dialect = dialect
        self.started_jobs: set[int] = set()
        """Jobs known to have left PENDING, to which none returns: a claim need not look again."""
        self.installation = ""
        """What the installation is called, once someone has asked."""
        self.on_hints: Callable[[Iterable[str]], None] = _unheard
        """Told after each commit what others may want to know of it."""
        self.on_answer: list[Callable[[], None]] = []
        """Called after each read and each transaction that the database has answered."""
        self._writer = asyncio.Lock()
        self._idle_max = settings().sql_pool_size
        self._room_max = self._idle_max + settings().sql_max_overflow
        self._room = asyncio.Semaphore(self._room_max)
        self._idle: list[Connection] = []
        """Connections at hand. There is no other pool: one that is closed is closed."""
        self._ending: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, url: str, *, check: bool = True) -> Database:
        """Connect; refuse a schema that is not ours or not this version's."""
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
        """A connection that commits each statement by itself.

        Who comes when all are in use waits here. Whatever happens to it, the connection is at hand and fit for the
        next caller afterwards, or it is gone: nobody else keeps any.
        """
        await self._enter()
        try:
            connection = await self._take()
            try:
                yield connection
            except AaiclickError:  # a refusal of ours: the database has answered, and what was begun is undone
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
        """For the next caller; those beyond the pool's size were opened for a moment, and go.

        So does one that is lost though the caller said nothing: it may go on without what it asked.
        """
        if len(self._idle) < self._idle_max and not self._is_lost(connection):
            self._idle.append(connection)
        else:
            await self._drop(connection)

    async def _drop(self, connection: Connection) -> None:
        """Where the server has ended one, it has ended those that are idle too, and each would cost a call."""
        dropped = [connection]
        if self._is_lost(connection):
            dropped += self._idle
            self._idle.clear()
        await self._end(dropped)

    async def _end(self, connections: Iterable[Connection]) -> None:
        """End all of them, also if the caller is told again that it is over.

        The line may be silent: whoever has given up on it has waited long enough.
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
        """Run statements that only read, each seeing what is committed by then; its session refuses to write.

        `stale_ok`: the caller can do with what was committed a little while ago, as a replica would have it.
        """
        async with self.connection() as connection:
            answer = await work(Session(connection, self.dialect, reads_only=True))
        self._answered()
        return answer

    async def write_one(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Run a write whose first statement does all that must happen together: each statement commits by itself.

        Again if the database says that it may pass then.
        """
        return await self._insist(work, self._not_begun)

    async def transact(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Run `work` in one transaction, all of it again if the database says that it may pass then."""
        return await self._insist(work, self._transaction)

    async def _insist(
        self, work: Callable[[Session], Awaitable[T]], opened: Callable[[], AbstractAsyncContextManager[Session]]
    ) -> T:
        for attempt in range(1, TRIES + 1):
            try:
                async with opened() as session:
                    answer = await work(session)
                if session.hints:
                    self.on_hints(session.hints)
                self._answered()
                return answer
            except Exception as error:
                if not self.dialect.is_transient(error):
                    raise
                if attempt == TRIES:
                    raise TransientStoreError(attempts=TRIES, cause=one_line(error)) from error
                await asyncio.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311 (no secret)
        raise AssertionError("unreachable")

    def _answered(self) -> None:
        for hear in self.on_answer:
            hear()

    @asynccontextmanager
    async def _not_begun(self) -> AsyncIterator[Session]:
        async with self.connection() as connection:
            yield Session(connection, self.dialect)

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
            yield Session(connection, self.dialect)
            await self.dialect.command(connection, "COMMIT")
        except BaseException as error:
            if self.dialect.one_writer or isinstance(error, AaiclickError):  # else it goes, and all that was begun
                await asyncio.shield(self._rollback(connection))
            raise

    async def _rollback(self, connection: Connection) -> None:
        """A connection that cannot even roll back, in a while, is thrown away."""
        try:
            async with asyncio.timeout(ROLLBACK_S_MAX):
                await self.dialect.command(connection, "ROLLBACK")
        except Exception:
            await connection.invalidate()


def _unheard(hints: Iterable[str]) -> None:
    """Nobody listens."""


async def _discard(connections: Iterable[Connection]) -> None:
    """Who knows what state they are in: the next ones are new."""
    await asyncio.gather(*map(_throw_away, connections))


async def _throw_away(connection: Connection) -> None:
    try:
        async with asyncio.timeout(GOODBYE_S_MAX):
            await connection.invalidate()
        await connection.close()
    except Exception as error:  # of a connection that nobody will use again
        log.debug("a connection did not end in order: %s", one_line(error))
