"""No-op async tasks through a real worker process on SQLite, as a ratio to two bare sqlite3 loops.

A bare loop claims and completes rows of a plain table of two columns, a transaction for each claim and each completion,
on a file in WAL mode with synchronous=NORMAL, which is what our own files use. One loop does it task by task, the other
for 100 tasks at a time, as the floor of PostgreSQL does.

Run: python -m benchmarks.sqlite_workers [--tasks 60000] [--rounds 5]
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

BATCHES = (1, 100)


def bare_rate(count: int, batch: int) -> float:
    """Tasks a second of the bare loop that takes so many at a time."""
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
        while rows := _claim(connection, batch):
            connection.execute("begin immediate")
            connection.executemany("update floor set state = 2 where id = ? and state = 1", rows)
            connection.execute("commit")
        rate = count / (time.perf_counter() - started)
        connection.close()
        return rate


def _claim(connection: sqlite3.Connection, batch: int) -> list[tuple[int]]:
    connection.execute("begin immediate")
    rows = connection.execute(
        "update floor set state = 1 where id in (select id from floor where state = 0 order by id limit ?)"
        " returning id",
        (batch,),
    ).fetchall()
    connection.execute("commit")
    return rows


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    bare: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    ours: list[float] = []
    print(machine(), "sqlite", sqlite3.sqlite_version)
    for number in range(given.rounds):
        for batch, rates in bare.items():
            rates.append(bare_rate(given.tasks, batch))
        async with fresh_database("sqlite") as url:
            rate, micros = await worker_rate(url, given.tasks, 1, 200)
        ours.append(rate)
        loops = ", ".join(f"bare by {batch} {rates[-1]:,.0f}/s" for batch, rates in bare.items())
        print(f"round {number + 1}: {loops}, worker {rate:,.0f}/s, CPU {micros:.1f} µs a task", flush=True)
    rate = statistics.median(ours)
    for batch, rates in bare.items():
        floor = statistics.median(rates)
        print(f"medians, bare loop by {batch}: worker {rate:,.0f}/s of {floor:,.0f}/s, ratio {rate / floor:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
