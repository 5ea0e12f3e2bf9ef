"""Building, checking and committing large graphs, and running long ones end to end without bodies.

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.graphs [sqlite postgres mariadb] [--tasks 100000]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
import tracemalloc
from itertools import pairwise

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Done, Job, Task
from aaiclick.orchestration.store.database import Database
from benchmarks.setting import fresh_database, machine


def layered(count: int, edges_per_task: int) -> list[Task]:
    """Tasks of which each waits for a few random earlier ones."""
    draw = random.Random(1)
    tasks: list[Task] = []
    for number in range(count):
        task = Task("benchmarks.bodies.noop", {"number": number})
        for earlier in draw.sample(range(max(0, number - 1000), number), min(number, edges_per_task)):
            task.depends_on(tasks[earlier])
        tasks.append(task)
    return tasks


def chain(count: int) -> list[Task]:
    tasks = [Task("benchmarks.bodies.noop", {"number": number}) for number in range(count)]
    for earlier, later in pairwise(tasks):
        earlier >> later
    return tasks


def fan_in(count: int) -> list[Task]:
    tasks = [Task("benchmarks.bodies.noop", {"number": number}) for number in range(count)]
    last = Task("benchmarks.bodies.noop", {"inputs": list(tasks)})
    return [*tasks, last]


async def commit(coordinator: DirectCoordinator, tasks: list[Task]) -> Job:
    job = new_job("bench")
    submission = gather(job.id, tasks)
    submission.new_job = job
    return await coordinator.submit(submission)


async def run(coordinator: DirectCoordinator, job: Job) -> None:
    worker = await coordinator.register(hostname="bench", pid=1)
    while claims := await coordinator.claim(worker.id, limit=100):
        await coordinator.report(worker.id, [Done(claim.task_id, claim.epoch) for claim in claims])
    ended = await coordinator.job(job.id)
    assert ended is not None
    assert ended.status == "completed", ended


def memory_per_task() -> float:
    """Bytes of one task with two edges, in memory, before it is committed."""
    tracemalloc.start()
    tasks = layered(10_000, 2)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / len(tasks)


async def measure(kind: str, count: int) -> None:
    async with fresh_database(kind) as url:
        database = await Database.open(url)
        coordinator = DirectCoordinator(database)
        try:
            started = time.perf_counter()
            tasks = layered(count, 2)
            built = time.perf_counter()
            await commit(coordinator, tasks)
            committed = time.perf_counter()
            print(
                f"| {kind} | {count:,} tasks, {2 * count:,} edges | build {built - started:.1f} s |"
                f" check and commit {committed - built:.1f} s | {committed - started:.1f} s |",
                flush=True,
            )
            # what is ready of the large graph would be claimed first
            await coordinator.reserve(tasks[0].job_id or 0, worker_id=1)
            for title, build in (("chain", chain), ("fan-in", fan_in)):
                started = time.perf_counter()
                job = await commit(coordinator, build(count // 10))
                committed = time.perf_counter()
                await run(coordinator, job)
                ended = time.perf_counter()
                print(
                    f"| {kind} | {title} of {count // 10:,} | commit {committed - started:.1f} s |"
                    f" run {ended - committed:.1f} s | {ended - started:.1f} s |",
                    flush=True,
                )
        finally:
            await database.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sqlite", "postgres", "mariadb"])
    parser.add_argument("--tasks", type=int, default=100_000)
    given = parser.parse_args()
    print(machine())
    print(f"memory: {memory_per_task():,.0f} bytes a task with two edges, before it is committed")
    print("| database | graph | | | in all |\n|---|---|---|---|---|")
    for kind in given.kinds:
        await measure(kind, given.tasks)


if __name__ == "__main__":
    asyncio.run(main())
