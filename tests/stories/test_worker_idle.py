"""What ten idle workers ask of the database: next to nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

from sqlalchemy import event

from aaiclick.ids import set_id_source
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.coordinator.machine_ids import provide_ids
from aaiclick.orchestration.execution.heartbeat import Heartbeat
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects.postgres import PostgresDialect
from tests.servers.databases import MariadbDatabases, PostgresDatabases, SqliteDatabases
from tests.support.crewing import ScriptedExecutor

WORKERS = 10
SESSION_S, BEAT_S = 30.0, 10.0
LOOKS = 9
"""After so many that found nothing, workers look as seldom as they ever will."""
STATEMENTS_PER_S_MAX = 10.0
NOT_COUNTED = ("BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION", "SET SESSION")


class Counting:
    """Counts the statements of databases, those that asyncpg is asked directly included."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def note(self, statement: str) -> None:
        words = " ".join(statement.split())
        if not words.startswith(NOT_COUNTED):
            self.seen[words[:100]] += 1

    def watch(self, database: Database) -> None:
        engine = database.engine.sync_engine
        event.listen(engine, "before_cursor_execute", lambda *facts: self.note(facts[2]))
        if isinstance(database.dialect, PostgresDialect):  # what SQLAlchemy prepares, asyncpg does not log
            event.listen(engine, "connect", lambda connection, _: self._watch_asyncpg(connection))

    def _watch_asyncpg(self, connection: Any) -> None:
        connection.driver_connection.add_query_logger(lambda query: self.note(query.query))


@asynccontextmanager
async def _idle_worker(url: str, counting: Counting, number: int) -> AsyncIterator[TaskWorker]:
    database = await Database.open(url, check=False)
    counting.watch(database)
    await provide_ids(database)
    coordinator = DirectCoordinator(database)
    worker = TaskWorker(coordinator, ScriptedExecutor(), concurrency=4)
    tasks = [asyncio.create_task(Control(database, number + 1, session_s=SESSION_S).run())]

    async def attend(worker: TaskWorker) -> None:
        heart = Heartbeat(coordinator, worker.id, worker.holdings, worker.obey, every_s=BEAT_S)
        tasks.append(asyncio.create_task(heart.beat_forever()))

    worker.on_session = attend
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await running
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await database.close()


async def _count(url: str) -> tuple[float, Counter[str]]:
    """Statements a second, and which."""
    counting = Counting()
    async with AsyncExitStack() as opened:
        workers = [await opened.enter_async_context(_idle_worker(url, counting, number)) for number in range(WORKERS)]
        # from a look on: at another time one more might fit in
        while min(worker._call for worker in workers) < LOOKS:  # noqa: ASYNC110 (there is no event to wait for)
            await asyncio.sleep(0.05)
        counting.seen.clear()
        await asyncio.sleep(BEAT_S)
        seen = Counter(counting.seen)
    return seen.total() / BEAT_S, seen


async def test_ten_idle_workers_ask_less_than_ten_times_a_second(
    sqlite_databases: SqliteDatabases, postgres_databases: PostgresDatabases, mariadb_databases: MariadbDatabases
) -> None:
    """SQLite apart: a process that makes its ids beside a file would ask the servers for the right to at every turn."""
    counted: list[tuple[float, Counter[str]]] = []
    for sources in ((postgres_databases, mariadb_databases), (sqlite_databases,)):
        set_id_source(None)
        with ExitStack() as opened:
            urls = [opened.enter_context(databases.migrated()) for databases in sources]
            counted += await asyncio.gather(*(_count(url) for url in urls))
    for rate, seen in counted:
        assert 0 < rate < STATEMENTS_PER_S_MAX, (rate, seen.most_common())
