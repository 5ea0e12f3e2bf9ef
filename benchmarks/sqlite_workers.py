"""No-op async tasks through a real worker process on SQLite, as a ratio to a bare sqlite3 loop.

The bare loop claims 100 and completes 100 rows of a plain table, each in a transaction, on a file in WAL mode with
synchronous=NORMAL, which is what our own files use.

Run: python -m benchmarks.sqlite_workers [--tasks 30000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.setting import fresh_database, machine
from benchmarks.workers import worker_rate


def bare_rate(count: int) -> float:
    """Tasks a second of the bare loop."""
    with TemporaryDirectory() as directory:
        connection = sqlite3.connect(Path(directory) / "floor.db", isolation_level=None)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.execute("create table floor(id integer primary key, state integer not null default 0)")
        connection.execute("create index floor_ready on floor(id) where state = 0")
        connection.execute("begin")
        connection.executemany("insert into floor(id) values (?)", [(number,) for number in range(count)])
        connection.execute("commit")
        started = time.perf_counter()
        while rows := _claim(connection):
            connection.execute("begin immediate")
            connection.executemany("update floor set state = 2 where id = ? and state = 1", rows)
            connection.execute("commit")
        rate = count / (time.perf_counter() - started)
        connection.close()
        return rate


def _claim(connection: sqlite3.Connection) -> list[tuple[int]]:
    connection.execute("begin immediate")
    rows = connection.execute(
        "update floor set state = 1 where id in (select id from floor where state = 0 order by id limit 100)"
        " returning id"
    ).fetchall()
    connection.execute("commit")
    return rows


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    bare, ours = [], []
    print(machine(), "sqlite", sqlite3.sqlite_version)
    for number in range(given.rounds):
        bare.append(bare_rate(given.tasks))
        async with fresh_database("sqlite") as url:
            rate, micros = await worker_rate(url, given.tasks, 1, 200)
        ours.append(rate)
        print(
            f"round {number + 1}: bare {bare[-1]:,.0f}/s, worker {rate:,.0f}/s, CPU {micros:.1f} µs a task", flush=True
        )
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"medians: bare {statistics.median(bare):,.0f}/s, worker {statistics.median(ours):,.0f}/s, ratio {ratio:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
