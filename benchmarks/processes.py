"""No-op tasks through `worker start --executor process`, and a soak that watches memory, descriptors and connections.

Run: python -m tests.servers postgres -- python -m benchmarks.processes [--tasks 5000] [--soak-minutes 10]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from tempfile import TemporaryDirectory

import psutil
from sqlalchemy import text

from aaiclick.config import reset_settings
from aaiclick.orchestration import create_job, orch_context
from aaiclick.orchestration.connections import connected
from benchmarks.latency import start_worker, until_ended
from benchmarks.setting import fresh_database, machine

CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"


def state_of(pid: int) -> tuple[float, int, int]:
    """Megabytes, descriptors and processes of the whole tree."""
    tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    memory, descriptors = 0.0, 0
    for process in tree:
        try:
            memory += process.memory_info().rss / 1e6
            descriptors += process.num_fds()
        except psutil.NoSuchProcess:
            continue
    return memory, descriptors, len(tree)


async def rate(count: int) -> float:
    body = {"entrypoint": "benchmarks.bodies.noop", "kwargs": {"x": 1}}
    job = await create_job("processes", tasks=[body] * count)
    ended = await until_ended(job.id)
    assert ended.status == "completed", ended
    assert ended.started_at is not None
    assert ended.completed_at is not None
    return count / (ended.completed_at - ended.started_at).total_seconds()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=5_000)
    parser.add_argument("--soak-minutes", type=float, default=0)
    given = parser.parse_args()
    print(machine())
    async with fresh_database("postgres") as url:
        with TemporaryDirectory() as root:
            os.environ |= {"AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root, "AAICLICK_LOG_DIR": f"{root}/logs"}
            reset_settings()
            worker = start_worker(url, root, "--concurrency", "2")
            try:
                async with orch_context():
                    await rate(200)  # warms up
                    for _ in range(3):
                        found = await rate(given.tasks)
                        print(
                            f"2 warm children: {found:,.0f} tasks/s, {2000 / found:.2f} ms of a child each", flush=True
                        )
                    await soak(worker.pid, given.soak_minutes)
            finally:
                worker.terminate()
                assert worker.wait(60) == 0


async def soak(pid: int, minutes: float) -> None:
    until = time.monotonic() + 60 * minutes
    done = 0
    while time.monotonic() < until:
        count = 2_000
        found = await rate(count)
        done += count
        async with connected() as database:
            connections = await database.read(lambda session: session.scalar(text(CONNECTIONS)))
        memory, descriptors, processes = state_of(pid)
        print(
            f"{done:>8,} tasks: {found:,.0f}/s, {memory:,.0f} MB, {descriptors} descriptors, {processes} processes,"
            f" {connections} connections",
            flush=True,
        )


if __name__ == "__main__":
    asyncio.run(main())
