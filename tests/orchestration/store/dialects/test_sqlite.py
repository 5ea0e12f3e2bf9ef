"""SQLite: its own clock, other processes' locks, and threads."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, make_url, select, text

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects import sqlite as module
from aaiclick.orchestration.store.dialects.sqlite import SqliteDialect
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims
from tests.support.orchestra import Orchestra, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


def plain(stage: Orchestra) -> sqlite3.Connection:
    """A connection as another process would have it."""
    return sqlite3.connect(str(make_url(stage.database.url).database), isolation_level=None, timeout=0)


async def test_the_clock_is_injected(migrated_sql_url: str) -> None:
    """So that a simulator decides what time it is."""
    moment = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    dialect = SqliteDialect(time=lambda: moment)
    database = Database(migrated_sql_url, dialect.engine(migrated_sql_url), dialect)
    coordinator = DirectCoordinator(database)
    worker = await coordinator.register(hostname="here", pid=1)
    stage = Orchestra(database, coordinator, worker.id)
    node = make("t")
    await stage.submit(node)
    (claim,) = await stage.claim()
    assert (await stage.task(claim)).claimed_at == moment
    moment += timedelta(seconds=5)
    await stage.complete(claim)
    assert (await stage.task(claim)).completed_at == moment
    await database.close()


async def test_a_connection_is_prepared_for_readers_beside_one_writer(stage: Orchestra) -> None:
    async with stage.transaction() as session:
        assert await session.scalar(text("PRAGMA journal_mode")) == "wal"
        assert await session.scalar(text("PRAGMA synchronous")) == 1


async def test_the_write_lock_is_taken_at_the_beginning(stage: Orchestra) -> None:
    """A lock that is taken half-way ends in SQLITE_BUSY, whatever the patience (pitfall T18)."""
    async with stage.transaction():
        with closing(plain(stage)) as other, pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")


async def test_another_process_is_waited_for_while_the_event_loop_goes_on(stage: Orchestra) -> None:
    turns = 0
    with closing(plain(stage)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(stage.submit(make()))
        for _ in range(20):
            await asyncio.sleep(0.001)
            turns += 1
        assert not waiting.done()
        other.execute("COMMIT")
        assert (await waiting).total_tasks == 1
    assert turns == 20


async def test_one_that_never_ends_is_told_as_transient(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.05)
    with closing(plain(stage)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as caught:
            async with stage.transaction():
                pass
    assert stage.database.dialect.is_transient(caught.value)


async def test_a_refused_row_is_not_transient(stage: Orchestra) -> None:
    rows = [{"worker_id": 1, "task_id": 1, "epoch": 1}] * 2
    with pytest.raises(Exception, match="UNIQUE") as caught:
        await stage.database.transact(lambda session: session.insert(claims, rows))
    assert not stage.database.dialect.is_transient(caught.value)


async def test_a_big_insert_leaves_the_event_loop_free_and_is_undone_whole_when_cancelled(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback beside the thread that still inserts crashes the interpreter, or commits the rest row by row."""
    monkeypatch.setattr(module, "ON_A_THREAD", 10)
    rows = [{"worker_id": 1, "task_id": number, "epoch": 1} for number in range(50_000)]
    inserting = asyncio.Event()

    async def work(session: Session) -> None:
        inserting.set()
        await session.insert(claims, rows)

    running = asyncio.create_task(stage.database.transact(work))
    await inserting.wait()
    await asyncio.sleep(0)
    for _ in range(3):  # impatience does not help either
        running.cancel()
        await asyncio.sleep(0.001)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await stage.scalar(select(func.count()).select_from(claims)) == 0
    await stage.submit(*(make() for _ in range(20)))
    assert not await stage.violations()


async def test_an_error_on_the_thread_reaches_the_caller(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ON_A_THREAD", 1)
    rows = [{"worker_id": 1, "task_id": 1, "epoch": 1}] * 2
    with pytest.raises(Exception, match="UNIQUE"):
        await stage.database.transact(lambda session: session.insert(claims, rows))


async def test_a_killed_writer_leaves_nothing_half_done(stage: Orchestra) -> None:
    await stage.submit(make("before"))
    other = plain(stage)
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM tasks")
    other.close()  # as a process that dies
    assert await stage.ready_names() == ["before"]
    assert not await stage.violations()
