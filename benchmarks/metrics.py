"""What a scrape of the metrics costs, and «why is it pending?», beside a million tasks.

Medians, with the number of statements: with all events counted for good, as after a quiet time; with so many that are
not, as under load; the step that counts them; and why a task waits that is the last in the queue, or has 100,000
before it.

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.metrics [sqlite postgres mariadb] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import event, text

from aaiclick.orchestration.queries.metrics import to_text
from aaiclick.orchestration.rules.pending import judge
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.reading.pending import read_facts
from aaiclick.orchestration.store.session import Session
from benchmarks.setting import fresh_database, machine

REPEAT = 7
JOBS = 1_000
LAST = 5_000_000
"""The task that has many before it."""

_NUMBERS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {count})"
_AT = "'2026-01-01 00:00:00.000000'"
_TASK = "id, job_id, name, entrypoint, kwargs, status, epoch, created_at"
_RUN = "task_id, epoch, attempt, claimed_at, started_at, ended_at, outcome"
_FILL = (
    ("tasks", _TASK, "x, 1 + x % {jobs}, 't', 'm.f', '{{}}', 'completed', 1, {at}"),
    ("runs", _RUN, "x, 1, 0, {at}, {at}, {at}, 'completed'"),
    ("events", "job_id, task_id, epoch, move, status, at", "1 + x % {jobs}, x, 1, 'complete', 'completed', {at}"),
    ("ready", "reserved_for, lane, rank, job_id, task_id", "0, 0, 0, 1 + x % {jobs}, x"),
)


async def fill(database: Database, count: int) -> None:
    """So many tasks that completed, each with its run and its event; and as many that are ready."""
    numbers = _NUMBERS.format(count=count)
    kind = database.dialect.name

    async def work(session: Session) -> None:
        if kind == "mariadb":
            await session.run(text("SET SESSION max_recursive_iterations = 4294967295"))
        for table, columns, values in _FILL:
            chosen = values.format(jobs=JOBS, at=f"{_AT}::timestamptz" if kind == "postgresql" else _AT)
            written = f"INSERT INTO {table} ({columns}) {numbers} SELECT {chosen} FROM n"
            await session.run(text(written))
        await _add_jobs(session, kind)

    await database.transact(work)
    if kind == "postgresql":
        async with database.connection() as connection:
            await connection.execute(text("ANALYZE"))


async def _add_jobs(session: Session, kind: str) -> None:
    at = f"{_AT}::timestamptz" if kind == "postgresql" else _AT
    job = "INSERT INTO jobs (id, name, status, run_type, preservation_mode, created_at)"
    await session.run(
        text(f"{job} {_NUMBERS.format(count=JOBS)} SELECT x, 'j', 'running', 'manual', 'none', {at} FROM n")
    )
    last = "INSERT INTO tasks (id, job_id, name, entrypoint, kwargs, status, unmet_count, created_at)"
    await session.run(text(f"{last} VALUES ({LAST}, 1, 'last', 'm.f', '{{}}', 'pending', 3, {at})"))
    edge = "INSERT INTO dependencies (previous_id, previous_type, next_id, next_type, job_id)"
    edges = f"{edge} {_NUMBERS.format(count=100_000)} SELECT x, 'task', {LAST}, 'task', 1 FROM n"
    await session.run(text(edges))


async def measure(database: Database, work: Callable[[], Awaitable[Any]]) -> tuple[float, int]:
    """The median in milliseconds, and the number of statements."""
    seen: list[str] = []

    def note(*told: Any) -> None:
        seen.append(told[2])

    engine = getattr(database.engine, "sync_engine", database.engine)
    costs = []
    event.listen(engine, "before_cursor_execute", note)
    try:
        for _ in range(REPEAT):
            seen.clear()
            started = time.perf_counter()
            await work()
            costs.append(time.perf_counter() - started)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return 1000 * statistics.median(costs), len(seen)


async def bench(kind: str, count: int) -> None:
    async with fresh_database(kind) as url:
        database = await Database.open(url)
        try:
            await fill(database, count)
            await _scrapes(kind, database, count)
            await _questions(kind, database, count)
        finally:
            await database.close()


async def _scrapes(kind: str, database: Database, count: int) -> None:
    async def scrape() -> None:
        to_text(await database.read(metrics.read_metrics))

    show(kind, f"scrape, {min(count, metrics.SHOWN_MAX):,} events not counted yet", *await measure(database, scrape))
    costs = []
    while True:
        started = time.perf_counter()
        if not await database.transact(metrics.count_settled):
            break
        costs.append(time.perf_counter() - started)
    show(kind, f"count {metrics.STEP:,} events for good", 1000 * statistics.median(costs), 0)
    show(kind, "scrape, all events counted", *await measure(database, scrape))


async def _questions(kind: str, database: Database, count: int) -> None:
    async def ask(task_id: int) -> None:
        facts = await database.read(lambda session: read_facts(session, task_id))
        assert facts is not None
        judge(facts)

    show(kind, "why: 100,000 before it", *await measure(database, lambda: ask(LAST)))
    await database.transact(
        lambda session: session.run(text(f"UPDATE tasks SET status = 'pending' WHERE id = {count}"))
    )
    show(kind, f"why: in a queue of {count:,}", *await measure(database, lambda: ask(count)))


def show(kind: str, what: str, cost_ms: float, statements: int) -> None:
    print(f"| {kind} | {what} | {cost_ms:.1f} | {statements or ''} |", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sqlite", "postgres", "mariadb"])
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 for a million tasks")
    given = parser.parse_args()
    print(machine())
    print("| database | what | ms | statements |\n|---|---|---|---|")
    for kind in given.kinds:
        await bench(kind, int(1_000_000 * given.scale))


if __name__ == "__main__":
    asyncio.run(main())
