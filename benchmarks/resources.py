"""What a claim costs whose task needs resources, and how many GPUs are granted a second.

First: claims of one task, plain, with one need (a GPU) and with three (a GPU, processors, a licence of everybody), with
so many tasks waiting in the same lane; each is completed before the next, outside of what is measured. Then the same
with one need of which 1,000 other runs hold a part. Last: 16 claimers take and complete tasks of one GPU each, with
1, 8 and 64 GPUs on nodes of eight.

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.resources [sqlite postgres mariadb] [--million]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Mapping
from typing import Any

from aaiclick.ids import new_ids
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Done
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants
from aaiclick.orchestration.store.lanes import intern_lanes
from aaiclick.orchestration.store.resources.units import set_capacity
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, ready, tasks
from benchmarks.setting import fresh_database, machine

CLAIMS, WARM = 200, 20
CHUNK = 50_000
CLAIMERS, GPUS_OF_A_NODE, GRANT_S = 16, 8, 10.0
NEEDS: tuple[tuple[str, dict[str, float]], ...] = (
    ("nothing", {}),
    ("one thing", {"gpu": 1}),
    ("three things", {"gpu": 1, "cpu": 1, "licence": 1}),
)
HOLDERS = 1_000


async def fill(database: Database, count: int, resources: Mapping[str, float]) -> int:
    """Insert ready tasks of one job with these needs; return their lane."""
    lane = (await database.transact(lambda session: intern_lanes(session, [{"resources": resources}])))[0]
    lane = lane if resources else 0
    now = await database.read(Session.now)
    (job_id,) = new_ids(1)
    job = {"id": job_id, "name": "bench", "status": "running", "run_type": "manual", "preservation_mode": "none"}
    job |= {"open_tasks": count, "total_tasks": count, "created_at": now, "started_at": now}
    await database.transact(lambda session: session.insert(jobs, [job]))
    for start in range(0, count, CHUNK):
        ids = new_ids(min(CHUNK, count - start))
        rows = [
            {"id": task, "job_id": job_id, "name": "t", "entrypoint": "benchmarks.bodies.noop"}
            | {"kwargs": "{}", "status": "pending", "created_at": now, "lane": lane}
            for task in ids
        ]
        places = [{"reserved_for": 0, "lane": lane, "rank": 0, "job_id": job_id, "task_id": task} for task in ids]
        await database.transact(lambda session, rows=rows: session.insert(tasks, rows))
        await database.transact(lambda session, places=places: session.insert(ready, places))
    return lane


async def begin(coordinator: DirectCoordinator, name: str = "box", **resources: Any) -> int:
    node = NodeDescription(name, resources=resources)
    return (await coordinator.register(hostname="bench", pid=1, node=node)).id


async def hold(database: Database, worker: int, count: int) -> None:
    """Let so many other runs hold a part of the licence."""
    row = {"epoch": 1, "scope": 0, "name": "licence", "slot": 0, "amount": 1000, "worker_id": worker}
    rows = [{"task_id": task, **row} for task in new_ids(count)]
    await database.transact(lambda session: session.insert(resource_grants, rows))


async def claims(kind: str, waiting: int, resources: Mapping[str, float], holders: int = 0) -> tuple[float, float]:
    """Return milliseconds and CPU milliseconds of a claim, as medians."""
    async with fresh_database(kind) as url:
        database = await Database.open(url)
        try:
            coordinator = DirectCoordinator(database)
            await database.transact(lambda session: set_capacity(session, "licence", holders + 9))
            worker = await begin(coordinator, gpu=8, cpu=64)
            await hold(database, worker, holders)
            lane = await fill(database, max(waiting, CLAIMS + WARM), resources)
            await coordinator.claiming.choice.met(worker, [lane])  # so that the needs of the lane are known
            times, cpus = [], []
            for number in range(CLAIMS + WARM):
                began, cpu = time.perf_counter(), time.process_time()
                taken = await coordinator.claim(worker, limit=1, lanes=[lane], begins=1)
                if number >= WARM:
                    times.append(time.perf_counter() - began)
                    cpus.append(time.process_time() - cpu)
                assert len(taken) == 1
                await coordinator.report(worker, [Done(claim.task_id, claim.epoch) for claim in taken])
                if number % 20 == 0:
                    await coordinator.beat(worker)
        finally:
            await database.close()
    return statistics.median(times) * 1000, statistics.median(cpus) * 1000


async def compare(kind: str, waits: list[int]) -> None:
    """A row for each number of waiting tasks and each set of needs."""
    for waiting in waits:
        base = 0.0
        for title, resources in NEEDS:
            ms, cpu_ms = await claims(kind, waiting, resources)
            base = base or ms
            print(f"| {kind} | {waiting:,} | {title} | {ms:.2f} | {ms / base:.2f}x | {cpu_ms:.2f} |", flush=True)
    ms, cpu_ms = await claims(kind, waits[0], {"licence": 1}, HOLDERS)
    print(
        f"| {kind} | {waits[0]:,} | a licence of which {HOLDERS:,} hold one | {ms:.2f} | | {cpu_ms:.2f} |", flush=True
    )


async def grants(kind: str, gpus: int) -> float:
    """Return how many GPUs were granted a second, each task being completed at once."""
    async with fresh_database(kind) as url:
        database = await Database.open(url)
        try:
            coordinator = DirectCoordinator(database)
            homes = max(1, gpus // GPUS_OF_A_NODE)
            crew = [await begin(coordinator, f"box{number % homes}", gpu=gpus // homes) for number in range(CLAIMERS)]
            lane = await fill(database, 100_000 if kind != "sqlite" else 20_000, {"gpu": 1})
            await coordinator.claiming.choice.met(crew[0], [lane])
            done, until = 0, time.perf_counter() + GRANT_S

            async def work(worker: int) -> None:
                nonlocal done
                while time.perf_counter() < until:
                    taken = await coordinator.claim(worker, limit=1, lanes=[lane], begins=1)
                    if taken:
                        await coordinator.report(worker, [Done(claim.task_id, claim.epoch) for claim in taken])
                    done += len(taken)

            began = time.perf_counter()
            await asyncio.gather(*(work(worker) for worker in crew))
            return done / (time.perf_counter() - began)
        finally:
            await database.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sqlite", "postgres", "mariadb"])
    parser.add_argument("--million", action="store_true", help="also with a million tasks waiting")
    given = parser.parse_args()
    print(machine(), f"{CLAIMS} claims of one task", sep=", ")
    print("| database | waiting | needs | ms | | CPU ms |")
    print("|---|---|---|---|---|---|")
    for kind in given.kinds:
        await compare(kind, [100, 10_000, *([1_000_000] if given.million else [])])
    print(f"\n| database | GPUs | granted a second, {CLAIMERS} claimers |\n|---|---|---|")
    for kind in given.kinds:
        for gpus in (1, 8, 64):
            print(f"| {kind} | {gpus} | {await grants(kind, gpus):.0f} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
