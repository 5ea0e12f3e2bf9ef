"""SQLite on the event loop's own thread."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest
from sqlalchemy import text
from sqlalchemy.pool import NullPool

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects import sqlite
from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.inline import InlineEngine
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import delayed

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


async def test_a_statement_runs_where_it_was_asked_for(sql_url):
    engine = InlineEngine(sql_url)
    connection = await engine.connect()
    where: list[int] = []
    driver_of(connection).create_function("note_thread", 0, lambda: where.append(threading.get_ident()))
    await connection.execute(text("SELECT note_thread()"))
    assert where == [threading.get_ident()]
    await connection.close()
    await engine.dispose()


async def test_a_closed_connection_says_so(sql_url):
    engine = InlineEngine(sql_url)
    connection = await engine.connect()
    await connection.close()
    await connection.close()
    with pytest.raises(AssertionError, match="closed"):
        await connection.execute(text("SELECT 1"))
    await engine.dispose()


async def test_many_connections_at_once_do_not_stop_the_loop(sql_url):
    """Who may have one is decided by the line of the database, which does not block."""
    engine = InlineEngine(sql_url)
    assert isinstance(engine.sync_engine.pool, NullPool)
    opened = [await engine.connect() for _ in range(60)]
    for connection in opened:
        await connection.close()
    await engine.dispose()


async def test_the_loop_goes_on_while_another_process_holds_the_write_lock(migrated_sql_url):
    database = await Database.open(migrated_sql_url)
    other = sqlite3.connect(migrated_sql_url.partition(":///")[2], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    turns = 0

    async def write(session: Session) -> None:
        await session.run(text("DELETE FROM ripples"))

    waiting = asyncio.create_task(database.transact(write))
    while turns < 20:
        await asyncio.sleep(0)
        turns += 1
    assert not waiting.done()
    other.execute("COMMIT")
    await waiting
    other.close()
    await database.close()


async def test_a_bulk_insert_does_not_hold_up_the_loop(migrated_sql_url, monkeypatch):
    monkeypatch.setattr(sqlite, "ON_A_THREAD", 10)
    database = await Database.open(migrated_sql_url)
    threads: set[str] = set()
    real = asyncio.to_thread

    async def watched(work, *args):
        threads.add("used")
        return await real(work, *args)

    monkeypatch.setattr(asyncio, "to_thread", watched)

    async def insert(session: Session) -> None:
        now = await session.now()
        await session.insert(delayed, [{"run_after": now, "task_id": Task("m.f").id} for _ in range(20)])

    await database.transact(insert)
    assert threads == {"used"}
    await database.close()
