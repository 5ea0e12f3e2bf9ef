"""The client of a directory on this machine, whoever owns its engine at the moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from aaiclick.data.clients.contract import DataClient, Rows, Settings
from aaiclick.data.clients.pool import PooledClient
from aaiclick.errors import DataUnreachable

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Open = Callable[[], tuple[PooledClient, Callable[[], None]]]
"""Finds or starts the engine: a client for it, and how to give back what that took. It blocks."""

_of_the_parent: list[object] = []
"""What a forked process leaves alone, and keeps: it would be closed by whoever forgets it."""


class LocalClient:
    """Goes on with the next owner when one is gone: what only reads is asked again, what writes is not."""

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
        await self._once(lambda client: client.command(sql, settings))

    async def rows(self, sql: str, settings: Settings | None = None) -> Rows:
        return await self._again(lambda client: client.rows(sql, settings))

    async def make(self, sql: str, look: str, settings: Settings | None = None) -> Rows:
        return await self._once(lambda client: client.make(sql, look, settings))

    def rows_now(self, sql: str, settings: Settings | None = None) -> Rows:
        return self._now.rows_now(sql, settings)

    async def arrow(self, sql: str, settings: Settings | None = None) -> pa.Table:
        return await self._again(lambda client: client.arrow(sql, settings))

    def batches(self, sql: str, settings: Settings | None = None) -> AsyncIterator[pa.RecordBatch]:
        return self._now.batches(sql, settings)

    async def save(self, sql: str, file_format: str, path: str, settings: Settings | None = None) -> int:
        return await self._once(lambda client: client.save(sql, file_format, path, settings))

    async def insert(self, table: str, data: pa.Table, *, token: str | None = None) -> int:
        return await self._once(lambda client: client.insert(table, data, token=token))

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

    @property
    def _now(self) -> PooledClient:
        if self._client is None:
            raise DataUnreachable(cause="the client is closed" if self._closed else "its engine is gone")
        return self._client

    async def _once(self, ask: Callable[[DataClient], Awaitable[T]]) -> T:
        if self._client is None and not self._closed:  # nobody took the place of the last owner
            await self._move(None)
        used = self._now
        try:
            return await ask(used)
        except DataUnreachable:
            await self._move(used)
            raise

    async def _again(self, ask: Callable[[DataClient], Awaitable[T]]) -> T:
        try:
            return await self._once(ask)
        except DataUnreachable:
            return await ask(self._now)

    async def _move(self, gone: PooledClient | None) -> None:
        await asyncio.to_thread(self._move_now, gone)

    def _move_now(self, gone: PooledClient | None) -> None:
        """Find the next owner, or become it; once, however many have noticed."""
        with self._moving:
            if self._client is gone and not self._closed:
                self._leave()
                self.open()

    def _leave(self) -> None:
        client, self._client = self._client, None
        end, self._end = self._end, lambda: None
        if client is not None:
            client.close_now()
            end()
