"""The client of a directory on this machine, whoever owns its engine at the moment."""

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
"""Finds or starts the engine: a client for it, and how to give back what that took. It blocks."""

_of_the_parent: list[object] = []
"""What a forked process leaves alone, and keeps: it would be closed by whoever forgets it."""


REPEATED_S_MAX = 60.0
"""How long a statement that did not get there is sent again."""

LOST_MAX = 3
"""So often an answer may be lost: what is asked may itself be the end of whoever answers."""

PAUSE_S_MIN, PAUSE_S_MAX = 0.01, 0.5

AUTHENTICATION_FAILED = 516
"""What the next owner says, who listens at the same place with another password."""

_IDEMPOTENT = re.compile(r"\s*(?:DROP\s+TABLE\s+IF\s+EXISTS|CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS)\b", re.I)


class LocalClient:
    """Goes on with the next owner when one is gone.

    What did not get there is sent again, whatever it is. Where only the answer was lost, what reads is asked again, and
    rows are sent again with the same token; other statements fail. A token does not help those that take their rows
    from a query: it may cut them into other blocks the next time.
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
        """Find the engine; it blocks."""
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
        """Asked again until the first piece has come: the next owner may give the rows in another order."""
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
        token = token or uuid4().hex  # the same for all tries
        return await self._ask(lambda client: client.insert(table, data, token=token))

    async def close(self) -> None:
        """Close the client, and the engine if it is ours."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """`close`, blocking."""
        with self._moving:
            self._closed = True
            self._leave()

    def become_copy(self) -> None:
        """In a process that was forked: find the engine anew, which is its parent's or of another."""
        _of_the_parent.append((self._client, self._end))
        self._client, self._end = None, lambda: None
        self._moving = threading.Lock()

    async def _ask(self, ask: Callable[[DataClient], Awaitable[T]], *, again: bool = True) -> T:
        """Ask whoever owns the engine; with `again`, also if an answer may have been lost."""
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
        """The client of the moment; finds one if nobody took the place of the last owner."""
        self._move_now(None)
        if (found := self._client) is None:
            raise DataUnreachable(cause="the client is closed" if self._closed else "its engine is gone")
        return found

    async def _move(self, gone: PooledClient) -> None:
        await asyncio.to_thread(self._move_now, gone)

    def _move_now(self, gone: PooledClient | None) -> None:
        """Find the next owner, or become it; once, however many have noticed."""
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
    """What is refused is no reason to look for another who answers, but for these codes."""
    if isinstance(error, DataRefused) and error.facts["code"] not in elsewhere:
        raise error


class Patience:
    """How often and how long one statement is tried again."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._pause_s = PAUSE_S_MIN / 2
        self._lost = 0

    def pause_s(self, error: DataUnreachable | DataRefused, *, again: bool) -> float:
        """How long to wait; raises what is not tried again."""
        if isinstance(error, DataUnreachable) and not is_unsent(error):
            self._lost += 1
            if not again or self._lost > LOST_MAX or is_unseen(error):
                raise error
        if time.monotonic() >= self._until:
            raise DataUnreachable(**error.facts) from error
        self._pause_s = min(self._pause_s * 2, PAUSE_S_MAX)
        return self._pause_s
