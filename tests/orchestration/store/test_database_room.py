"""More callers than connections: they take turns, and none is lost or kept for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest
from sqlalchemy import literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from aaiclick.config import reset_settings
from aaiclick.errors import BackendUnreachable
from aaiclick.orchestration.store import database as store_database
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from tests.support.bodies import until
from tests.support.orchestra import Orchestra, orchestra

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def echo(session: Session, number: int) -> int:
    """What the database says when it is told this number."""
    return int(await session.scalar(select(literal(number))))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One process may have three connections."""
    monkeypatch.setenv("AAICLICK_SQL_POOL_SIZE", "2")
    monkeypatch.setenv("AAICLICK_SQL_MAX_OVERFLOW", "1")
    reset_settings()
    yield
    reset_settings()


@servers_only
async def test_more_callers_than_connections_take_turns(few: None, migrated_sql_url: str) -> None:
    """Those that waited for the pool were not told of connections that were idle again, and failed after a while."""
    database = await Database.open(migrated_sql_url)
    try:
        assert await asyncio.gather(*(database.read(partial(echo, number=each)) for each in range(50))) == [*range(50)]
        assert len(database._idle) <= 2
    finally:
        await database.close()


@servers_only
async def test_connections_beyond_the_pools_size_are_open_for_a_moment(few: None, migrated_sql_url: str) -> None:
    database = await Database.open(migrated_sql_url)
    try:
        async with database.connection() as first, database.connection(), database.connection():
            assert not database._idle
        assert len(database._idle) == 2
        assert first not in database._idle
        assert isinstance(first, AsyncConnection)
        assert first.closed
    finally:
        await database.close()


@servers_only
async def test_who_waits_too_long_for_a_connection_is_told(
    few: None, migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_database, "ROOM_S_MAX", 0.01)
    database = await Database.open(migrated_sql_url)
    try:
        async with database.connection(), database.connection(), database.connection():
            with pytest.raises(BackendUnreachable, match="all 3 connections of this process were in use"):
                await database.read(partial(echo, number=1))
        assert await database.read(partial(echo, number=2)) == 2
    finally:
        await database.close()


class Dead:
    """A connection that the server has ended; to notice that takes a while."""

    def __init__(self) -> None:
        self.closed = False

    async def invalidate(self) -> None:
        await asyncio.sleep(0.001)

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_who_is_cancelled_twice_loses_no_connection(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    """When one is lost, those that are idle are given back too, whatever becomes of the caller."""
    monkeypatch.setattr(Database, "_is_lost", lambda *_: True)
    dead, inside = [Dead(), Dead(), Dead()], asyncio.Event()

    async def use() -> None:
        async with stage.database.connection():
            stage.database._idle[:0] = dead  # type: ignore[assignment]
            inside.set()
            await asyncio.Event().wait()

    using = asyncio.create_task(use())
    await inside.wait()
    using.cancel()
    await asyncio.sleep(0)
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    await until(lambda: all(each.closed for each in dead), limit_s=10)
