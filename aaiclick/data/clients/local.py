"""The client of a directory on this machine, whichever process owns its engine at the moment."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from aaiclick.data.clients.client_errors import is_unseen, is_unsent
from aaiclick.data.clients.contract import DataClient, Rows, Settings
from aaiclick.data.clients.pool import PooledClient
from aaiclick.data.clients.tables import ALONE, Tables
from aaiclick.errors import DataRefused, DataUnreachable

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Open = Callable[[], tuple[PooledClient, Callable[[], None]]]
"""Finds or starts the engine; returns a client and a function that releases what it took. It blocks."""

_of_the_parent: list[object] = []
"""Clients of the parent, kept by a forked process: to free them would close the parent's connections."""


REPEATED_S_MAX = 60.0
"""How long a statement that did not arrive is sent again, in seconds."""

LOST_MAX = 3
"""How many answers of one statement may be lost: the statement itself may be what kills the engine."""

PAUSE_S_MIN, PAUSE_S_MAX = 0.01, 0.5

AUTHENTICATION_FAILED = 516
"""The error code of the next owner, which listens at the same address with another password."""

_IDEMPOTENT = re.compile(r"\s*(?:DROP\s+TABLE\s+IF\s+EXISTS|CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS)\b", re.I)


class LocalClient:
    """A client of the engine of one directory; it moves to the next owner when one is gone.

    A statement that did not arrive is sent again, whatever it does. If only the answer was lost, queries and idempotent
    statements are repeated, and rows are sent again with the same token; other statements fail. A token does not help
    an INSERT that takes its rows from a query, which may cut them into other blocks the next time.
    """

    tables: Tables = ALONE
    _elsewhere = frozenset({AUTHENTICATION_FAILED})

    def __init__(self, opening: Open) -> None:
        self._opening = opening
        self._client: PooledClient | None = None
        self._closed = False
        self._end: Callable[[], None] = lambda: None
        self._moving = threading.Lock()

    def open(self) -> None:
        """Find the engine; this blocks."""
        self._client, self._end = self._opening()

    async def command(self, sql: str, settings: Settings | None = None) -> None:
        again = _IDEMPOTENT.match(sql) is not None
        await self._ask(lambda client: client.command(sql, settings), again=again)

    async def rows(self, sql: str, settings: Settings | None = None) -> Rows:
        return await self._ask(lambda client: client.rows(sql, settings))

    async def make(self, sql: str, look: str, settings: Settings | None = None) -> Rows:
        try:
            return await self._ask(lambda client: client.make(sql, look, settings), again=False)
        except DataUnreachable as error:
            if not is_unseen(error):
                raise
            return await self.rows(look)

    def rows_now(self, sql: str, settings: Settings | None = None) -> Rows:
        patience = self._patience()
        while True:
            used = self._used_now()
            try:
                return used.rows_now(sql, settings)
            except (DataUnreachable, DataRefused) as error:
                _raise_refusal(error, self._elsewhere)
                self._move_now(used)
                pause_s = patience.pause_s(error, again=True)
            time.sleep(pause_s)

    async def arrow(self, sql: str, settings: Settings | None = None) -> pa.Table:
        return await self._ask(lambda client: client.arrow(sql, settings))

    async def batches(self, sql: str, settings: Settings | None = None) -> AsyncIterator[pa.RecordBatch]:
        """Yield batches. The query is repeated only before the first: the next owner may order rows otherwise."""
        patience = self._patience()
        while True:
            used, began = await self._used(), False
            try:
                async with aclosing(used.batches(sql, settings)) as found:
                    async for batch in found:
                        began = True
                        yield batch
                return
            except (DataUnreachable, DataRefused) as error:
                _raise_refusal(error, self._elsewhere)
                await self._move(used)
                pause_s = patience.pause_s(error, again=not began)
            await asyncio.sleep(pause_s)

    async def save(
        self, sql: str, file_format: str, path: str, settings: Settings | None = None, packing: str = ""
    ) -> int:
        return await self._ask(lambda client: client.save(sql, file_format, path, settings, packing))

    async def insert(self, table: str, data: pa.Table, *, token: str | None = None) -> int:
        token = token or uuid4().hex  # the same for all attempts
        return await self._ask(lambda client: client.insert(table, data, token=token))

    async def close(self) -> None:
        """Close the client, and the engine if this process owns it."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """Like `close`, but it blocks."""
        with self._moving:
            self._closed = True
            self._leave()

    def become_copy(self) -> None:
        """Find the engine anew in a forked process: its owner is the parent or another process."""
        _of_the_parent.append((self._client, self._end))
        self._client, self._end = None, lambda: None
        self._moving = threading.Lock()

    async def _ask(self, ask: Callable[[DataClient], Awaitable[T]], *, again: bool = True) -> T:
        """Ask the owner of the engine; with `again`, repeat it also if an answer may have been lost."""
        patience = self._patience()
        while True:
            used = await self._used()
            try:
                return await ask(used)
            except (DataUnreachable, DataRefused) as error:
                _raise_refusal(error, self._elsewhere)
                await self._move(used)
                pause_s = patience.pause_s(error, again=again)
            await asyncio.sleep(pause_s)

    async def _used(self) -> PooledClient:
        found = self._client
        return await asyncio.to_thread(self._used_now) if found is None else found

    def _used_now(self) -> PooledClient:
        """Return the current client; after a failed move, look for an owner again."""
        self._move_now(None)
        if (found := self._client) is None:
            raise DataUnreachable(cause="the client is closed" if self._closed else "its engine is gone")
        return found

    async def _move(self, gone: PooledClient) -> None:
        await asyncio.to_thread(self._move_now, gone)

    def _move_now(self, gone: PooledClient | None) -> None:
        """Find the next owner or become it, once, however many callers noticed that `gone` does not answer."""
        with self._moving:
            if self._client is gone and not self._closed:
                self._leave()
                self.open()

    def _patience(self) -> Patience:
        return Patience(REPEATED_S_MAX)

    def _leave(self) -> None:
        client, self._client = self._client, None
        end, self._end = self._end, lambda: None
        if client is not None:
            client.close_now()
            end()


def _raise_refusal(error: DataUnreachable | DataRefused, elsewhere: Container[int]) -> None:
    """Raise a refusal, except for codes after which another owner or replica is asked."""
    if isinstance(error, DataRefused) and error.facts["code"] not in elsewhere:
        raise error


class Patience:
    """The limits of repeating one statement: how often answers may be lost, and for how many seconds it is tried."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._pause_s = PAUSE_S_MIN / 2
        self._lost = 0

    def pause_s(self, error: DataUnreachable | DataRefused, *, again: bool) -> float:
        """Return how long to wait before the next attempt, in seconds; raise the error if there is to be none."""
        if isinstance(error, DataUnreachable) and not is_unsent(error):
            self._lost += 1
            if not again or self._lost > LOST_MAX or is_unseen(error):
                raise error
        if time.monotonic() >= self._until:
            raise DataUnreachable(**error.facts) from error
        self._pause_s = min(self._pause_s * 2, PAUSE_S_MAX)
        return self._pause_s
