"""No-op async tasks through real `aaiclick worker start --executor inline` processes, as a ratio to the floor.

All tasks are submitted before the first worker starts. The time is the job's own, from its first claim to its end, by
the database's clock: starting Python is not part of it. CPU is that of the worker processes from start to end.

With --peers, pgqueuer and procrastinate run in the same rounds (see benchmarks/peers.py), procrastinate with a tenth of
the tasks.

Run: python -m tests.servers postgres -- python -m benchmarks.workers [--tasks 60000] [--rounds 5] [--peers]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
from tempfile import TemporaryDirectory

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.store.database import Database
from benchmarks.floor import floor_rate
from benchmarks.peers import RATES, peer_rate
from benchmarks.setting import fresh_database, machine, postgres_dsn, submit_tasks


async def worker_rate(url: str, count: int, workers: int, concurrency: int) -> tuple[float, float]:
    """Tasks a second, and CPU microseconds of the workers for each."""
    database = await Database.open(url)
    try:
        coordinator = DirectCoordinator(database)
        job = await submit_tasks(coordinator, count, body="benchmarks.bodies.nothing")
        cpu = _cpu_s()
        with TemporaryDirectory() as root:
            processes = [_start(url, root, concurrency) for _ in range(workers)]
            while (ended := await coordinator.job(job.id)) is not None and ended.completed_at is None:
                await asyncio.sleep(0.2)
                assert any(process.poll() is None for process in processes), "the workers have gone"
            for process in processes:
                process.terminate()
            for process in processes:
                assert process.wait(60) == 0
        assert ended is not None
        assert (ended.status, ended.completed_tasks) == ("completed", count), ended
        assert ended.started_at is not None
        assert ended.completed_at is not None
        seconds = (ended.completed_at - ended.started_at).total_seconds()
        return count / seconds, (_cpu_s() - cpu) / count * 1e6
    finally:
        await database.close()


def _start(url: str, root: str, concurrency: int) -> subprocess.Popen[bytes]:
    env = {**os.environ, "AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root, "AAICLICK_LOG_DIR": f"{root}/logs"}
    command = ["-m", "aaiclick", "worker", "start", "--executor", "inline", "--concurrency", str(concurrency)]
    return subprocess.Popen([sys.executable, *command], env=env)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args()
    floors: list[float] = []
    ours: dict[int, list[float]] = {count: [] for count in given.workers}
    theirs: dict[str, list[float]] = {name: [] for name in (RATES if given.peers else ())}
    print(machine())
    for number in range(given.rounds):
        floors.append(await floor_rate(postgres_dsn(), given.tasks))
        print(f"round {number + 1}: floor {floors[-1]:,.0f}/s", flush=True)
        for count in given.workers:
            async with fresh_database("postgres") as url:
                rate, micros = await worker_rate(url, given.tasks, count, given.concurrency)
            ours[count].append(rate)
            print(f"  {count} workers: {rate:,.0f}/s, CPU {micros:.1f} µs a task", flush=True)
        for name, rates in theirs.items():
            size = given.tasks // 10 if name == "procrastinate" else given.tasks
            async with fresh_database("postgres", migrated=False) as url:
                rates.append(await asyncio.to_thread(peer_rate, name, url.replace("+asyncpg", ""), size))
            print(f"  {name}: {rates[-1]:,.0f}/s", flush=True)
    floor = statistics.median(floors)
    for count, rates in ours.items():
        rate = statistics.median(rates)
        print(f"medians, {count} workers: {rate:,.0f}/s of {floor:,.0f}/s, ratio {rate / floor:.2f}")
    for name, rates in theirs.items():
        rate = statistics.median(rates)
        print(f"medians, {name}: {rate:,.0f}/s of {floor:,.0f}/s, ratio {rate / floor:.3f}")


if __name__ == "__main__":
    asyncio.run(main())
