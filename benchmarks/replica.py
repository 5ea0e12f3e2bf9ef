"""A replica's first copy, as rows a second and as a ratio to the bare floor; and its lag under a steady load of events.

    nice -n 19 python -m benchmarks.replica --tasks 100000 --events 1000 --seconds 20

Coordinator, replica and whoever writes are one process each. The floor copies the same rows of the same columns from
one SQLite file to another with two bare `sqlite3` connections, in pages, without any of what makes a copy resumable.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import insert, update

from aaiclick.config import reset_settings
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.replicas.replicated import REPLICATED, columns_of
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, tasks
from aaiclick.server.replicas.opening import Replicated, replica_opened, replicated_of

PAGE = 5_000
BATCHES_A_SECOND = 10


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def server(port: int) -> Iterator[None]:
    """A coordinator in a process of its own."""
    command = [sys.executable, "-m", "aaiclick", "server", "start", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        assert "serving" in process.stderr.readline()
        yield
    finally:
        process.terminate()
        process.wait()


async def fill(number: int) -> int:
    """Store one job of so many tasks; return its id."""
    job = new_job("filled")
    submission = gather(job.id, [Task("some.module.f", {"n": n}, name=f"task {n}") for n in range(number)])
    submission.new_job = job
    async with coordinated() as there:
        await there.submit(submission)
    return job.id


def floor(source: Path, target: Path) -> float:
    """Return how many rows two bare connections copy in a second of CPU."""
    table = REPLICATED["tasks"]
    names = ", ".join(column.name for column in columns_of(table))
    places = ", ".join("?" * len(columns_of(table)))
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        (schema,) = read.execute("SELECT sql FROM sqlite_master WHERE name = 'tasks'").fetchone()
        written.execute("PRAGMA journal_mode = WAL")
        written.execute("PRAGMA synchronous = NORMAL")
        written.execute(schema)
        for (index,) in read.execute("SELECT sql FROM sqlite_master WHERE tbl_name = 'tasks' AND type = 'index'"):
            if index:
                written.execute(index)
        began, last, count = time.process_time(), 0, 0
        chosen = f"SELECT {names} FROM tasks WHERE id > ? ORDER BY id LIMIT {PAGE}"
        while rows := read.execute(chosen, (last,)).fetchall():
            with written:
                written.executemany(f"INSERT OR REPLACE INTO tasks ({names}) VALUES ({places})", rows)
            last, count = rows[-1][0], count + len(rows)
        return count / (time.process_time() - began)


async def write_events(url: str, job_id: int, rate: int, seconds: float) -> None:
    """Change so many tasks a second, each with its event."""
    database = await Database.open(url)
    batch = rate // BATCHES_A_SECOND
    ids = [row.id for row in await database.read(lambda session: session.rows(tasks.select().limit(batch)))]

    async def work(session: Session) -> None:
        now = await session.now()
        await session.run(update(tasks).where(session.any_of(tasks.c.id, ids)).values(started_at=now))
        row = {"job_id": job_id, "move": "start", "status": "running", "at": now}
        await session.run(insert(events).values([row | {"task_id": task_id} for task_id in ids]))

    begun = time.monotonic()
    for number in range(int(seconds * BATCHES_A_SECOND)):
        await asyncio.sleep(max(0.0, begun + number / BATCHES_A_SECOND - time.monotonic()))
        await database.transact(work)
    await database.close()


async def main(arguments: argparse.Namespace) -> None:
    home = Path(tempfile.mkdtemp())
    url = f"sqlite+aiosqlite:///{home / 'state.db'}"
    os.environ |= {"AAICLICK_LOCAL_ROOT": str(home / "root"), "AAICLICK_SQL_URL": url}
    reset_settings()
    async with connected():
        token = (await create_token("benchmark", "replica")).text
        job_id = await fill(arguments.tasks)
    port = free_port()
    with server(port):
        for turn in range(arguments.turns):
            bare = floor(home / "state.db", home / f"floor {turn}.db")
            replicated = replicated_of(f"http://127.0.0.1:{port}", home / f"replica {turn}.db", token)
            async with replica_opened(replicated) as replica:
                began, cpu_began = time.perf_counter(), time.process_time()
                await replica.feeder.compare_all()
                rows = replica.progress.counts.rows
                ours, by_cpu = rows / (time.perf_counter() - began), rows / (time.process_time() - cpu_began)
            told = f"{ours:,.0f} rows a second; {by_cpu:,.0f} a second of the replica's CPU, floor {bare:,.0f}"
            print(f"first copy of {rows:,} rows: {told}, ratio {by_cpu / bare:.2f}", flush=True)
        replicated = replicated_of(f"http://127.0.0.1:{port}", home / "replica 0.db", token)
        await lag(replicated, url, job_id, arguments)


async def lag(replicated: Replicated, url: str, job_id: int, arguments: argparse.Namespace) -> None:
    """Print how old the replica is, at each tenth of a second of a steady load, and how old once it has ended."""
    command = [sys.executable, "-m", "benchmarks.replica", "--write", url, "--job", str(job_id)]
    command += ["--events", str(arguments.events), "--seconds", str(arguments.seconds)]
    async with replica_opened(replicated) as replica:
        feeding = asyncio.create_task(replica.feeder.run())
        writing = asyncio.create_task((await asyncio.create_subprocess_exec(*command)).wait())
        found: list[int] = []
        while not writing.done():
            await asyncio.sleep(0.1)
            found.append(replica.progress.lag_ms)
        feeding.cancel()
        counts = replica.progress.counts
    found.sort()
    p50, p95 = statistics.median(found), found[int(len(found) * 0.95)]
    print(f"lag: p50 {p50:.0f} ms, p95 {p95} ms, {counts.events} events in {counts.calls} calls, of {len(found)} looks")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--write", default="")
    parser.add_argument("--job", type=int, default=0)
    given = parser.parse_args()
    if given.write:
        asyncio.run(write_events(given.write, given.job, given.events, given.seconds))
    else:
        asyncio.run(main(given))
