"""What a claim costs, beside more and more tasks that cannot be claimed.

Medians of claims of 1 and of 100 tasks, with blocked, delayed and finished tasks beside them; the finished ones are
drained through the queue, as they would be in life, with the control loop turning beside it. The last part drains while
another connection holds an old snapshot, as a dump would: then PostgreSQL cannot clean up behind the queue.

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.claims [sqlite postgres mariadb] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from aaiclick.ids import new_ids
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Done
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import delayed, tasks
from benchmarks.setting import fresh_database, machine, submit_tasks

SINGLES, BATCHES, BATCH = 300, 40, 100
CHUNK = 50_000
RECONCILE_EVERY = 20
"""Batches between two turns of the control loop: more often than not, it finds nothing to do."""


class Bench:
    """One database under test, with a worker that claims."""

    def __init__(self, database: Database, worker_id: int) -> None:
        self.database = database
        self.coordinator = DirectCoordinator(database)
        self.worker_id = worker_id

    async def claim(self, limit: int) -> tuple[int, float]:
        started = time.perf_counter()
        claims = await self.coordinator.claim(self.worker_id, limit=limit)
        return len(claims), time.perf_counter() - started

    async def medians_ms(self) -> tuple[float, float]:
        """The median of a claim of 1 and of 100, in milliseconds, on a job that is made for it."""
        await submit_tasks(self.coordinator, SINGLES + BATCHES * BATCH)
        singles = [await self.claim(1) for _ in range(SINGLES)]
        batches = [await self.claim(BATCH) for _ in range(BATCHES)]
        assert all(count == 1 for count, _ in singles), "a claim of 1 came back empty"
        assert all(count == BATCH for count, _ in batches), "a claim of 100 came back short"
        return (
            statistics.median(seconds for _, seconds in singles) * 1000,
            statistics.median(seconds for _, seconds in batches) * 1000,
        )

    async def add_waiting(self, count: int, *, delay: bool) -> None:
        """Tasks that cannot be claimed: blocked by a prerequisite, or delayed for a day."""
        for start in range(0, count, CHUNK):
            ids = new_ids(min(CHUNK, count - start))

            async def work(session: Session, ids: list[int] = ids) -> None:
                now = await session.now()
                later = now + timedelta(days=1) if delay else None
                unmet = 0 if delay else 1
                await session.insert(tasks, [_waiting_row(task, now, later, unmet) for task in ids])
                if delay:
                    await session.insert(delayed, [{"run_after": later, "task_id": task} for task in ids])

            await self.database.transact(work)

    async def drain(self, count: int) -> list[float]:
        """Send tasks through the queue: submit, claim, complete; gives what each claim of 100 cost."""
        costs = []
        for start in range(0, count, CHUNK):
            await submit_tasks(self.coordinator, min(CHUNK, count - start))
            while True:
                started = time.perf_counter()
                claims = await self.coordinator.claim(self.worker_id, limit=BATCH)
                costs.append(time.perf_counter() - started)
                if not claims:
                    break
                done = [Done(claim.task_id, claim.epoch) for claim in claims]
                await self.coordinator.report(self.worker_id, done)
                if len(costs) % RECONCILE_EVERY == 0:
                    await self.coordinator.reconcile()
        return costs


def _waiting_row(task: int, now: Any, later: Any, unmet: int) -> dict[str, Any]:
    return {
        "id": task,
        "job_id": 1,
        "name": "waiting",
        "entrypoint": "benchmarks.bodies.noop",
        "kwargs": "{}",
        "status": "pending",
        "unmet_count": unmet,
        "run_after": later,
        "created_at": now,
    }


@asynccontextmanager
async def bench(kind: str) -> AsyncIterator[Bench]:
    async with fresh_database(kind) as url:
        database = await Database.open(url)
        try:
            worker = await DirectCoordinator(database).register(hostname="bench", pid=1)
            yield Bench(database, worker.id)
        finally:
            await database.close()


async def flatness(kind: str, scale: float) -> None:
    """One table row for each kind and number of tasks in the way."""
    first: tuple[float, float] | None = None
    for title, count, prepare in (
        ("blocked", 100, "blocked"),
        ("blocked", 10_000, "blocked"),
        ("blocked", int(1_000_000 * scale), "blocked"),
        ("delayed", int(100_000 * scale), "delayed"),
        ("finished", int(1_000_000 * scale), "finished"),
    ):
        async with bench(kind) as under_test:
            if prepare == "finished":
                await under_test.drain(count)
            else:
                await under_test.add_waiting(count, delay=prepare == "delayed")
            one, hundred = await under_test.medians_ms()
        first = first or (one, hundred)
        print(
            f"| {kind} | {count:,} {title} | {one:.2f} | {one / first[0]:.2f}x"
            f" | {hundred:.2f} | {hundred / first[1]:.2f}x |",
            flush=True,
        )


async def old_snapshot(kind: str, count: int) -> None:
    """Drain while another connection holds a snapshot from before."""
    async with bench(kind) as under_test, under_test.database.engine.connect() as dump:
        level = "REPEATABLE READ"
        if kind == "postgres":
            await dump.execute(text(f"BEGIN ISOLATION LEVEL {level}"))
        else:
            await dump.execute(text(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}"))
            await dump.execute(text("START TRANSACTION WITH CONSISTENT SNAPSHOT"))
        await dump.execute(text("SELECT count(*) FROM tasks"))
        costs = await under_test.drain(count)
        await dump.execute(text("ROLLBACK"))
    tenth = len(costs) // 10
    early, late = statistics.median(costs[:tenth]), statistics.median(costs[-tenth:])
    worst = max(costs)
    print(
        f"{kind}, drained {count:,} under an old snapshot: a claim of 100 took {early * 1000:.2f} ms at first,"
        f" {late * 1000:.2f} ms in the last tenth ({late / early:.2f}x), mean {statistics.mean(costs) * 1000:.2f} ms,"
        f" at the most {worst * 1000:.0f} ms",
        flush=True,
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sqlite", "postgres", "mariadb"])
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 for a million tasks")
    given = parser.parse_args()
    print(machine())
    print("| database | in the way | claim 1, ms | | claim 100, ms | |\n|---|---|---|---|---|---|")
    for kind in given.kinds:
        await flatness(kind, given.scale)
    for kind in given.kinds:
        if kind != "sqlite":
            await old_snapshot(kind, int(200_000 * given.scale))


if __name__ == "__main__":
    asyncio.run(main())
