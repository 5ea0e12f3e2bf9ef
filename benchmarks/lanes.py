"""What a claim costs where ready tasks stand in one lane, and where they stand in a thousand.

A thousand workers of as many nodes are registered, and every lane is full of ready tasks. One worker claims ten at a
time, with a node that meets the needs of one lane, of all of them, or of none; the last finds only what is plain.
Medians of the time of a claim, and for each claim the CPU of this process, its statements, and what PostgreSQL read
(8 KB buffers of all kinds, of the whole database).

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.lanes [sqlite postgres mariadb] [--tasks 100000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import text

from aaiclick.ids import new_ids
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.lanes import intern_lanes
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, ready, tasks, workers
from benchmarks.setting import fresh_database, machine

CLAIMS, BATCH = 300, 10
CHUNK = 50_000
JOBS = 1_000
WORKERS = 1_000
FLUSHED_S = 1.5
"""PostgreSQL tells what was read about a second later."""


class Cost(NamedTuple):
    """Of a claim: milliseconds (median), CPU milliseconds of this process, statements, buffers, and tasks it got."""

    ms: float
    cpu_ms: float
    statements: float
    buffers: float | None
    tasks: float


class Stage:
    """A database with so many ready tasks in so many lanes."""

    def __init__(self, database: Database, kind: str) -> None:
        self.database = database
        self.kind = kind
        self.statements = 0
        connection = database.connection

        def counted() -> Any:
            self.statements += 1
            return connection()

        database.connection = counted  # type: ignore[method-assign]

    async def fill(self, count: int, lanes: int, *, plain: bool = False) -> None:
        """Insert ready tasks: half of them in the lane of the middle `rack`, or plain, the others in all in turns."""
        needs = [{"where": [["rack", "==", number]]} for number in range(lanes)]
        numbers = await self.database.transact(lambda session: intern_lanes(session, needs)) if lanes else [0]
        if plain:
            numbers[len(numbers) // 2] = 0
        now = await self.database.read(Session.now)
        job_ids = sorted(new_ids(JOBS))
        rows = [
            {"id": each, "name": "bench", "status": "running", "run_type": "manual", "preservation_mode": "none"}
            | {"open_tasks": 1, "created_at": now, "started_at": now}
            for each in job_ids
        ]
        await self.database.transact(lambda session: session.insert(jobs, rows))
        for start in range(0, count, CHUNK):
            ids = new_ids(min(CHUNK, count - start))
            placed = [(each, _lane_of(numbers, place)) for place, each in enumerate(ids, start)]
            await self.database.transact(lambda session, placed=placed: _insert(session, placed, job_ids, now))

    async def workers(self) -> None:
        """A thousand others, each on a node of its own."""
        now = await self.database.read(Session.now)
        ids = new_ids(2 * WORKERS)
        machines = [_node(each, number, now) for number, each in enumerate(ids[:WORKERS])]
        there = [_worker(each, node, now) for each, node in zip(ids[WORKERS:], ids[:WORKERS], strict=True)]
        await self.database.transact(lambda session: session.insert(nodes, machines))
        await self.database.transact(lambda session: session.insert(workers, there))

    async def settle(self) -> None:
        """Let the database know its tables, as it would in life."""
        statement = {"postgres": "VACUUM ANALYZE", "sqlite": "ANALYZE", "mariadb": "ANALYZE TABLE ready, tasks"}
        async with self.database.connection() as connection:
            await connection.execute(text(statement[self.kind]))

    async def cost(self, coordinator: DirectCoordinator, worker: int, lanes: Sequence[int] | None) -> Cost:
        for _ in range(20):
            await coordinator.claim(worker, limit=BATCH, lanes=lanes)
        before, sent, cpu = await self._buffers(), self.statements, time.process_time()
        times, got = [], 0
        for _ in range(CLAIMS):
            began = time.perf_counter()
            got += len(await coordinator.claim(worker, limit=BATCH, lanes=lanes))
            times.append(time.perf_counter() - began)
        cpu, sent = time.process_time() - cpu, self.statements - sent
        after = await self._buffers()
        read = None if before is None or after is None else (after - before) / CLAIMS
        return Cost(statistics.median(times) * 1000, cpu / CLAIMS * 1000, sent / CLAIMS, read, got / CLAIMS)

    async def _buffers(self) -> int | None:
        if self.kind != "postgres":
            return None
        await asyncio.sleep(FLUSHED_S)
        asked = "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
        return int(await self.database.read(lambda session: session.scalar(text(asked))))


def _lane_of(numbers: Sequence[int], place: int) -> int:
    return numbers[len(numbers) // 2] if place % 2 else numbers[place // 2 % len(numbers)]


async def _insert(session: Session, placed: Sequence[tuple[int, int]], job_ids: Sequence[int], now: Any) -> None:
    many = len(job_ids)
    await session.insert(
        tasks,
        [
            {"id": task, "job_id": job_ids[task % many], "name": "t", "entrypoint": "benchmarks.bodies.noop"}
            | {"kwargs": "{}", "status": "pending", "created_at": now, "lane": lane}
            for task, lane in placed
        ],
    )
    place = {"reserved_for": 0, "rank": 0}
    rows = [place | {"lane": lane, "job_id": job_ids[task % many], "task_id": task} for task, lane in placed]
    await session.insert(ready, [{name: row[name] for name in ready.columns.keys()} for row in rows])  # noqa: SIM118


def _node(node_id: int, number: int, now: Any) -> dict[str, Any]:
    facts = {"id": node_id, "name": f"other-{number}", "state": "open", "registered_at": now, "described_at": now}
    return facts | {"capabilities": json.dumps({"rack": -number}), "executor_types": '["python"]'}


def _worker(worker_id: int, node_id: int, now: Any) -> dict[str, Any]:
    facts = {"id": worker_id, "hostname": "other", "pid": 1, "status": "active", "node_id": node_id}
    return facts | {"last_heartbeat": now, "expires_at": now, "started_at": now, "concurrency": 1}


async def compare(kind: str, count: int) -> None:
    """A row for each number of lanes, and of what the worker's node meets of them."""
    base: Cost | None = None
    for title, lanes, plain, rack in (
        ("plain, named", 0, True, None),
        ("plain", 0, True, None),
        ("1 lane", 1, False, 0),
        ("1,000 lanes, 1 met", 1000, False, 500),
        ("1,000 lanes, all met", 1000, False, range(1000)),
        ("plain beside 1,000 lanes, none met", 1000, True, -1),
    ):
        async with fresh_database(kind) as url:
            database = await Database.open(url)
            try:
                stage = Stage(database, kind)
                await stage.workers()
                await stage.fill(count, lanes, plain=plain)
                await stage.settle()
                coordinator = DirectCoordinator(database)
                met = [] if rack is None else [rack] if isinstance(rack, int) else list(rack)
                cost = await _measured(stage, coordinator, met, (0,) if "named" in title else None)
            finally:
                await database.close()
        base = base or cost
        read = "" if cost.buffers is None else f"{cost.buffers:.0f}"
        print(
            f"| {kind} | {title} | {cost.tasks:.1f} | {cost.ms:.2f} | {cost.ms / base.ms:.2f}x | {cost.cpu_ms:.2f}"
            f" | {cost.cpu_ms / base.cpu_ms:.2f}x | {cost.statements:.2f} | {read} |",
            flush=True,
        )


async def _measured(
    stage: Stage, coordinator: DirectCoordinator, racks: Sequence[int], lanes: Sequence[int] | None
) -> Cost:
    """A node has at most a hundred values in a capability: one with more racks is what its lanes are taken for."""
    node = NodeDescription("box", capabilities={"rack": list(racks[:100])})
    worker = await coordinator.register(hostname="bench", pid=1, node=node)
    if len(racks) > 100:
        choice = coordinator.claiming.choice
        choice._serves.setdefault(worker.node_id or 0, {}).update(dict.fromkeys(range(1, len(racks) + 1), True))
    beating = asyncio.create_task(_beat(coordinator, worker.id))
    try:
        return await stage.cost(coordinator, worker.id, lanes)
    finally:
        beating.cancel()


async def _beat(coordinator: DirectCoordinator, worker: int) -> None:
    while True:
        await coordinator.beat(worker)
        await asyncio.sleep(5)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sqlite", "postgres", "mariadb"])
    parser.add_argument("--tasks", type=int, default=100_000)
    given = parser.parse_args()
    print(machine(), f"{given.tasks:,} ready tasks, {WORKERS:,} other workers, {BATCH} a claim", sep=", ")
    print("| database | tasks are | got | ms | | CPU ms | | connections | buffers |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in given.kinds:
        await compare(kind, given.tasks)


if __name__ == "__main__":
    asyncio.run(main())
