"""`map` and `reduce` over many rows: what a row costs a worker, beside the same function in a bare Python loop.

The engine is served by a process of its own, the state is in a SQLite file, and the worker is `aaiclick worker start`
with one child, then with two. Of each job the CPU time of the worker's whole tree is taken (its children too, without
the engine, which is shown apart), divided by the rows, and the wall time by the database's clock. Every job copies its
rows, makes its parts, joins what they made, and counts and sums the result in a last task.

Beside it, in this process: the bare loop over the same Arrow column (`to_pylist`, a list comprehension, `pa.array`),
before every job, since a shared machine is not always as fast; the batch function called once on the same table, and
the same computed by ClickHouse alone into a table.

Run: python -m benchmarks.operators [--sizes 100000 1000000 10000000] [--reduce 1000000] [--partition N] [--repeats 3]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil
import pyarrow as pa
import pyarrow.compute as pc

from aaiclick.config import reset_settings
from aaiclick.data import Object, create_object, data_context
from aaiclick.data.embedded.directory_lock import find_gateway
from aaiclick.data.tables.lifetimes import drop
from aaiclick.orchestration import Group, Task, create_job, get_task_result, map, orch_context, reduce
from benchmarks.latency import start_worker, until_ended
from benchmarks.setting import fresh_database, machine

HERE = "benchmarks.operators"


def double(x: int) -> int:
    return x * 2


def untyped(x):  # type: ignore[no-untyped-def]
    return x * 2


def doubles(batch: pa.Table) -> pa.Table:
    return pa.table({"value": pc.multiply(batch["value"], 2)})


async def total(partition: Object, output: Object) -> None:
    await output.insert(partition.sum())


async def checked(rows: Object) -> list[int]:
    return [await rows.count(), await rows.sum().data()]


# ---------------------------------------------------------------- what is measured


class Cost(NamedTuple):
    """Seconds: of the worker's CPU, of the engine's CPU, and by the clock."""

    worker: float
    engine: float
    wall: float


def cpu_of(pid: int) -> float:
    """CPU seconds of a process, of those below it, and of those below it that have ended."""
    found = 0.0
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        times = process.cpu_times()
        found += times.user + times.system + times.children_user + times.children_system
    return found


async def run(made: Group, worker: int, engine: int, expected: list[int]) -> Cost:
    """What a job of one operator costs."""
    last = Task(f"{HERE}.checked", {"rows": made})
    before, before_engine = cpu_of(worker), cpu_of(engine)
    job = await create_job("operators", tasks=[made, last])
    ended = await until_ended(job.id)
    assert ended.status == "completed", ended.error
    assert await get_task_result(last.id) == expected
    assert ended.started_at is not None
    assert ended.completed_at is not None
    wall = (ended.completed_at - ended.started_at).total_seconds()
    await asyncio.sleep(0.2)  # what the worker still writes down is its own
    return Cost(cpu_of(worker) - before, cpu_of(engine) - before_engine, wall)


def bare(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds in this process, the median."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def show(name: str, rows: int, cost: Cost, beside: float) -> None:
    print(
        f"{rows:>11,} {name:24} worker {cost.worker / rows * 1e9:7.0f} ns/row ({cost.worker / beside:5.2f} of the"
        f" loop's {beside / rows * 1e9:4.0f}), engine {cost.engine / rows * 1e9:6.0f} ns/row,"
        f" {cost.wall:6.2f} s by the clock, {rows / cost.wall:>11,.0f} rows/s",
        flush=True,
    )


# ---------------------------------------------------------------- the runs


async def maps(children: int, worker: int, engine: int, rows: int, partition: int | None, repeats: int) -> None:
    async with data_context() as context:
        numbers = await create_object({"value": "Int64"}, name=f"numbers_{rows}")
        await context.client.command(f"INSERT INTO {numbers.table} SELECT number FROM numbers({rows})")
        data = await numbers.arrow()
        column = data["value"]
        batch = bare(lambda: doubles(data), repeats)
        before, started = cpu_of(engine), time.perf_counter()
        query = f"SELECT value * 2 AS value FROM {numbers.table}"
        await context.client.command(f"CREATE TABLE made ENGINE = MergeTree ORDER BY tuple() AS {query}")
        wall, used = time.perf_counter() - started, cpu_of(engine) - before
        await drop(context.client, "made")
        print(
            f"{rows:>11,} batch function {batch / rows * 1e9:.1f} ns/row,"
            f" ClickHouse alone {used / rows * 1e9:.1f} ns/row and {wall:.2f} s",
            flush=True,
        )
        expected = [rows, rows * (rows - 1)]
        costs: dict[str, list[Cost]] = {name: [] for name in _MAPS}
        loops = []
        for _ in range(repeats):
            for name, options in _MAPS.items():
                loops.append(bare(lambda: pa.array([double(x) for x in column.to_pylist()]), 1))
                made = map(f"{HERE}.{name}", numbers, partition, **options)
                costs[name].append(await run(made, worker, engine, expected))
        for name, found in costs.items():
            show(f"{name}, children: {children}", rows, median(found), statistics.median(loops))
        await context.delete_object(f"numbers_{rows}")


_MAPS: dict[str, dict[str, Any]] = {"double": {}, "untyped": {}, "doubles": {"batch": True}}


async def reduces(children: int, worker: int, engine: int, rows: int, partition: int | None, repeats: int) -> None:
    async with data_context() as context:
        numbers = await create_object({"value": "Int64"}, name="reduced")
        await context.client.command(f"INSERT INTO {numbers.table} SELECT number FROM numbers({rows})")
        costs = []
        for _ in range(repeats):
            made = reduce(f"{HERE}.total", numbers, partition)
            costs.append(await run(made, worker, engine, [1, rows * (rows - 1) // 2]))
        cost = median(costs)
        print(
            f"{rows:>11,} reduce, children: {children}: worker {cost.worker:.2f} s, engine {cost.engine:.2f} s,"
            f" {cost.wall:.2f} s by the clock",
            flush=True,
        )
        await context.delete_object("reduced")


@contextmanager
def served(root: str) -> Any:
    """The engine in a process of its own: its pid."""
    directory = Path(root) / "served"
    server = subprocess.Popen([sys.executable, "-m", "aaiclick", "data", "serve", "--path", str(directory)])
    try:
        while find_gateway(directory, 1.0) is None:
            time.sleep(0.05)
        os.environ["AAICLICK_CH_URL"] = f"chdb://{directory}"
        yield server.pid
    finally:
        server.terminate()
        server.wait(30)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--reduce", type=int, default=1_000_000)
    parser.add_argument("--partition", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print(machine())
    async with fresh_database("sqlite") as url:
        with TemporaryDirectory() as root, served(root) as engine:
            os.environ |= {"AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root, "AAICLICK_LOG_DIR": f"{root}/logs"}
            reset_settings()
            for children in (1, 2):
                worker = start_worker(url, root, "--concurrency", str(children))
                async with orch_context():
                    try:
                        await reduces(children, worker.pid, engine, 1_000, None, 1)  # warms up
                        for rows in given.sizes:
                            await maps(children, worker.pid, engine, rows, given.partition, given.repeats)
                        if given.reduce:
                            args = (given.reduce, given.partition, given.repeats)
                            await reduces(children, worker.pid, engine, *args)
                    finally:
                        worker.terminate()
                        assert worker.wait(60) == 0


if __name__ == "__main__":
    asyncio.run(main())
