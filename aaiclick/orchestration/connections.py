"""The open connection to the state: a database for the front door, a coordinator for whoever runs tasks.

What it needs of the store is imported once it is opened: a process that only runs bodies never is asked to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from aaiclick.backend import get_db_url

if TYPE_CHECKING:
    from aaiclick.orchestration.coordinator.direct import DirectCoordinator
    from aaiclick.orchestration.store.database import Database


class _Open(NamedTuple):
    loop: asyncio.AbstractEventLoop
    database: Database
    coordinator: DirectCoordinator


_open: ContextVar[_Open | None] = ContextVar("aaiclick_open", default=None)


@asynccontextmanager
async def connected() -> AsyncIterator[Database]:
    """The database of the context around, or a connection of its own for as long as the block."""
    async with _opened() as opened:
        yield opened.database


@asynccontextmanager
async def coordinated() -> AsyncIterator[DirectCoordinator]:
    """The coordinator of the context around, or one of its own for as long as the block."""
    async with _opened() as opened:
        yield opened.coordinator


@asynccontextmanager
async def _opened() -> AsyncIterator[_Open]:
    around = _open.get()
    if around is not None and around.loop is asyncio.get_running_loop():
        yield around
        return
    from aaiclick.orchestration.bus import open_bus  # here, to keep start-up light
    from aaiclick.orchestration.coordinator.direct import DirectCoordinator  # here, to keep start-up light
    from aaiclick.orchestration.store.database import Database  # here, to keep start-up light

    database = await Database.open(get_db_url())
    bus = open_bus(database.url)
    opened = _Open(asyncio.get_running_loop(), database, DirectCoordinator(database, bus=bus))
    _open.set(opened)
    try:
        await opened.coordinator.grant_ids()
        yield opened
    finally:
        # not by token: a fixture may be left in another context than the one it was entered in
        _open.set(around)
        await bus.flush()
        await bus.close()
        await database.close()
