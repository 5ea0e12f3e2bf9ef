"""The open connection to the database: a `Database` for queries, a coordinator for submitting and running tasks.

The modules of the store are imported when a connection is opened: a process that only runs bodies never does that. A
coordinator and the bus are imported and made at their first use: commands that only read need neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from aaiclick.backend import get_db_url
from aaiclick.config import settings
from aaiclick.errors import NoDatabase

if TYPE_CHECKING:
    from aaiclick.orchestration.bus import Bus
    from aaiclick.orchestration.coordinator.contract import Coordinator, FrontDoor
    from aaiclick.orchestration.coordinator.direct import DirectCoordinator
    from aaiclick.orchestration.coordinator.http.front_door import HttpFrontDoor
    from aaiclick.orchestration.models.node_info import NodeDescription
    from aaiclick.orchestration.store.database import Database


class _Open:
    """An open database, with the bus and the coordinator that are made at their first use."""

    def __init__(self, database: Database) -> None:
        self.loop = asyncio.get_running_loop()
        self.database = database
        self._bus: Bus | None = None
        self._flushed = False
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

    async def wake_ups_trouble(self) -> str:
        bus = self._made_bus()
        if not self._flushed:  # the first hints are what shows whether others are reached
            await bus.flush()
            self._flushed = True
        return bus.trouble

    async def close(self) -> None:
        if self._bus is not None:
            await self._bus.flush()
            await self._bus.close()
        await self.database.close()


class _Asking(NamedTuple):
    """The open front door of a server."""

    loop: asyncio.AbstractEventLoop
    door: HttpFrontDoor


_asking: ContextVar[_Asking | None] = ContextVar("aaiclick_asking", default=None)
_open: ContextVar[_Open | None] = ContextVar("aaiclick_open", default=None)


@asynccontextmanager
async def connected() -> AsyncIterator[Database]:
    """Yield the database of the surrounding `connected` block, or one that is opened for this block."""
    async with _opened() as opened:
        yield opened.database


@asynccontextmanager
async def connected_to(database: Database) -> AsyncIterator[None]:
    """Let everything inside this block use this open database, and close it at the end. No ids can be made in it."""
    around, opened = _open.get(), _Open(database)
    _open.set(opened)
    try:
        yield
    finally:
        _open.set(around)
        await opened.close()


@asynccontextmanager
async def coordinated() -> AsyncIterator[DirectCoordinator]:
    """Yield the coordinator of the surrounding connection, or of one that is opened for this block."""
    async with _opened() as opened:
        yield opened.coordinator


async def wake_ups_trouble() -> str:
    """Return why the hints of the surrounding connection do not reach other processes now; empty if they may.

    Without them everything goes on: other processes find work at their next poll.
    """
    async with _opened() as opened:
        return await opened.wake_ups_trouble()


@asynccontextmanager
async def kept_connection() -> AsyncIterator[None]:
    """Keep one connection open for all calls inside; what they do not use is not imported."""
    around: AbstractAsyncContextManager[object] = front_door() if settings().coordinator_urls else _opened()
    async with around:
        yield


@asynccontextmanager
async def front_door() -> AsyncIterator[FrontDoor]:
    """Yield what a body may ask wherever it runs: the coordinator, or a server if AAICLICK_COORDINATOR_URL is set."""
    if not settings().coordinator_urls:
        async with _opened() as opened:
            yield opened.coordinator
        return
    around = _asking.get()
    if around is not None and around.loop is asyncio.get_running_loop():
        yield around.door
        return
    from aaiclick.orchestration.coordinator.http.opening import opened_front_door  # here, to keep start-up light

    door = await opened_front_door(settings())
    _asking.set(_Asking(asyncio.get_running_loop(), door))
    try:
        yield door
    finally:
        _asking.set(around)
        door.calls.close()


@asynccontextmanager
async def employed(node: NodeDescription | None = None) -> AsyncIterator[Coordinator]:
    """Yield the coordinator of a worker: that of a server if AAICLICK_COORDINATOR_URL is set, else the database's.

    `node` describes this machine, if it has to join first.
    """
    if not settings().coordinator_urls:
        async with coordinated() as coordinator:
            yield coordinator
        return
    from aaiclick.orchestration.coordinator.http.opening import opened_coordinator  # here, to keep start-up light

    remote = await opened_coordinator(settings(), node)
    try:
        yield remote
    finally:
        remote.close()


@asynccontextmanager
async def _opened() -> AsyncIterator[_Open]:
    around = _open.get()
    if around is not None and around.loop is asyncio.get_running_loop():
        yield around
        return
    if settings().coordinator_urls:
        hint = (
            "A task can create jobs, apply to them, wait for them and read their results; for anything else ask the "
            "server's REST API, or unset the variable where there is a database."
        )
        raise NoDatabase(call="This", hint=hint)
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
