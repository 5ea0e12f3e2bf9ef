"""The open connection to the database: a `Database` for queries, a coordinator for submitting and running tasks.

The modules of the store are imported when a connection is opened: a process that only runs bodies never does that. A
coordinator and the bus are imported and made at their first use: commands that only read need neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from aaiclick.backend import get_db_url

if TYPE_CHECKING:
    from aaiclick.orchestration.bus import Bus
    from aaiclick.orchestration.coordinator.direct import DirectCoordinator
    from aaiclick.orchestration.store.database import Database


class _Open:
    """An open database, with the bus and the coordinator that are made at their first use."""

    def __init__(self, database: Database) -> None:
        self.loop = asyncio.get_running_loop()
        self.database = database
        self._bus: Bus | None = None
        self._coordinator: DirectCoordinator | None = None
        database.on_hints = self._tell

    @property
    def coordinator(self) -> DirectCoordinator:
        from aaiclick.orchestration.coordinator.direct import DirectCoordinator  # here, to keep start-up light

        self._coordinator = self._coordinator or DirectCoordinator(self.database, bus=self._made_bus())
        return self._coordinator

    def _tell(self, hints: Iterable[str]) -> None:
        self._made_bus().tell(hints)

    def _made_bus(self) -> Bus:
        from aaiclick.orchestration.bus import open_bus  # here, to keep start-up light

        self._bus = self._bus or open_bus(self.database.url)
        return self._bus

    async def close(self) -> None:
        if self._bus is not None:
            await self._bus.flush()
            await self._bus.close()
        await self.database.close()


_open: ContextVar[_Open | None] = ContextVar("aaiclick_open", default=None)


@asynccontextmanager
async def connected() -> AsyncIterator[Database]:
    """Yield the database of the surrounding `connected` block, or one that is opened for this block."""
    async with _opened() as opened:
        yield opened.database


@asynccontextmanager
async def coordinated() -> AsyncIterator[DirectCoordinator]:
    """Yield the coordinator of the surrounding connection, or of one that is opened for this block."""
    async with _opened() as opened:
        yield opened.coordinator


@asynccontextmanager
async def _opened() -> AsyncIterator[_Open]:
    around = _open.get()
    if around is not None and around.loop is asyncio.get_running_loop():
        yield around
        return
    from aaiclick.orchestration.coordinator.machine_ids import provide_ids  # here, to keep start-up light
    from aaiclick.orchestration.store.database import Database  # here, to keep start-up light

    opened = _Open(await Database.open(get_db_url()))
    _open.set(opened)
    try:
        await provide_ids(opened.database)
        yield opened
    finally:
        # not `reset(token)`: an async fixture may be closed in another context than the one that opened it
        _open.set(around)
        await opened.close()
