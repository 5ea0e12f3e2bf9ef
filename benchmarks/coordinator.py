"""Coordinator throughput without bodies: claim and complete independent tasks in batches, as a ratio to the floor.

Run: python -m tests.servers postgres -- python -m benchmarks.coordinator [--tasks 60000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import time

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Done
from aaiclick.orchestration.store.database import Database
from benchmarks.floor import floor_rate
from benchmarks.setting import fresh_database, machine, postgres_dsn, submit_tasks

BATCH = 100


async def our_rate(url: str, count: int) -> tuple[float, float]:
    """Tasks a second, and CPU microseconds of this process for each."""
    database = await Database.open(url)
    try:
        coordinator = DirectCoordinator(database)
        job = await submit_tasks(coordinator, count)
        worker = await coordinator.register(hostname="bench", pid=1)
        cpu, started, pending = _cpu_s(), time.perf_counter(), None
        while claims := await coordinator.claim(worker.id, limit=BATCH):
            if pending:
                await pending
            done = [Done(claim.task_id, claim.epoch) for claim in claims]
            pending = asyncio.ensure_future(coordinator.report(worker.id, done))
        if pending:
            await pending
        wall_s, cpu_s = time.perf_counter() - started, _cpu_s() - cpu
        ended = await coordinator.job(job.id)
        assert ended is not None
        assert (ended.status, ended.completed_tasks) == ("completed", count), ended
        return count / wall_s, cpu_s / count * 1e6
    finally:
        await database.close()


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    floors, ours, cpu = [], [], []
    print(machine())
    for number in range(given.rounds):
        floors.append(await floor_rate(postgres_dsn(), given.tasks))
        async with fresh_database("postgres") as url:
            rate, micros = await our_rate(url, given.tasks)
        ours.append(rate)
        cpu.append(micros)
        print(
            f"round {number + 1}: floor {floors[-1]:,.0f}/s, ours {rate:,.0f}/s, CPU {micros:.1f} µs a task", flush=True
        )
    ratio = statistics.median(ours) / statistics.median(floors)
    print(
        f"medians: floor {statistics.median(floors):,.0f}/s, ours {statistics.median(ours):,.0f}/s, ratio {ratio:.2f}"
    )


if __name__ == "__main__":
    asyncio.run(main())
