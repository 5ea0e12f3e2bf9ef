"""No-op tasks through workers that ask a server, as a ratio to one worker with the database, in the same rounds.

All tasks are submitted before the first worker starts. The time is the job's own, from its first claim to its end. CPU
is that of workers and servers from the moment at which they are there. `--load` says what else the machine did.

Run: python -m tests.servers postgres -- python -m benchmarks.remote_workers [--tasks 20000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from aaiclick.config import reset_settings
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.store.database import Database
from benchmarks.setting import fresh_database, machine, submit_tasks

PORT = 8951


class Setup(NamedTuple):
    """What runs: so many workers, and so many servers that they ask; without servers, they have the database."""

    workers: int
    servers: int

    @property
    def name(self) -> str:
        return f"{self.workers} over {self.servers} servers" if self.servers else f"{self.workers} direct"


class Found(NamedTuple):
    """Tasks a second, and CPU microseconds for each: of the workers, and of the servers."""

    rate: float
    worker_micros: float
    server_micros: float


SETUPS = (Setup(1, 0), Setup(1, 1), Setup(2, 1), Setup(2, 2))


async def measure(url: str, count: int, setup: Setup, concurrency: int) -> Found:
    database = await Database.open(url)
    with TemporaryDirectory() as root:
        env = {**os.environ, "AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root, "AAICLICK_LOG_DIR": f"{root}/logs"}
        servers = [
            started(env, "server", "start", "--port", str(PORT + number), says="serving")
            for number in range(setup.servers)
        ]
        workers: list[subprocess.Popen[str]] = []
        try:
            job = await submit_tasks(DirectCoordinator(database), count, body="benchmarks.bodies.nothing")
            token = await _token(url) if servers else ""
            before = _cpu_s(servers)
            workers = [started(*_worker(env, setup, token, concurrency)) for _ in range(setup.workers)]
            while (ended := await DirectCoordinator(database).job(job.id)) is not None and ended.completed_at is None:
                await asyncio.sleep(0.2)
                assert all(process.poll() is None for process in workers), "a worker has gone"
            assert ended is not None
            assert ended.completed_tasks == count, ended
            assert ended.started_at is not None
            assert ended.completed_at is not None
            seconds = (ended.completed_at - ended.started_at).total_seconds()
            micros = 1e6 / count
            return Found(count / seconds, _cpu_s(workers) * micros, (_cpu_s(servers) - before) * micros)
        finally:
            for process in (*workers, *servers):
                process.terminate()
                process.wait(60)
            await database.close()


async def _token(url: str) -> str:
    os.environ["AAICLICK_SQL_URL"] = url
    reset_settings()
    return (await create_token("bench", "worker")).text


def _worker(env: Mapping[str, str], setup: Setup, token: str, concurrency: int) -> tuple[str | Mapping[str, str], ...]:
    urls = ",".join(f"http://127.0.0.1:{PORT + number}" for number in range(setup.servers))
    asked = ("--coordinator", urls) if urls else ("--no-control",)
    more = {"AAICLICK_API_TOKEN": token} if token else {}
    options = ("worker", "start", "--executor", "inline", "--concurrency", str(concurrency), *asked)
    return {**env, **more}, *options


def started(env: str | Mapping[str, str], *options: object, says: str = "") -> subprocess.Popen[str]:
    """A command of ours, once it has said that it is there."""
    assert not isinstance(env, str)
    command = [sys.executable, "-m", "aaiclick", *map(str, options)]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE if says else None, text=True)
    if says:
        assert process.stderr is not None
        while says not in process.stderr.readline():
            assert process.poll() is None, "it has gone"
    return process


def _cpu_s(processes: Sequence[subprocess.Popen[str]]) -> float:
    times = [psutil.Process(process.pid).cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--database", default="postgres", choices=("postgres", "mariadb", "sqlite"))
    given = parser.parse_args()
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    found: dict[Setup, list[Found]] = {setup: [] for setup in SETUPS}
    for number in range(given.rounds):
        for setup in SETUPS:
            async with fresh_database(given.database) as url:
                found[setup].append(await measure(url, given.tasks, setup, given.concurrency))
            rate, worker, server = found[setup][-1]
            print(
                f"round {number + 1}, {setup.name}: {rate:,.0f}/s, CPU {worker:.1f} µs a task in the workers,"
                f" {server:.1f} in the servers",
                flush=True,
            )
    direct = statistics.median(each.rate for each in found[SETUPS[0]])
    for setup, each in found.items():
        rate, worker, server = (statistics.median(values) for values in zip(*each, strict=True))
        print(
            f"medians, {setup.name}: {rate:,.0f}/s, ratio {rate / direct:.2f}; CPU {worker:.1f} µs a task in the"
            f" workers, {server:.1f} in the servers; load {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    asyncio.run(main())
