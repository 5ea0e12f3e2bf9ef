"""What it costs to keep tables alive: tasks with one input and one output Object, beside the same with plain values.

Chains of tasks, each reading the table of the one before and making one, reported as they end: without bodies and
without an engine, so that nothing but the bookkeeping differs. The unit is a bare commit: one row of a table of two
columns, changed in a transaction of the same pool. The three take turns in short blocks, and medians are compared: what
else the machine does meanwhile falls on all of them. On SQLite, where all happens in this process and no commit waits
for the disk, it is processor time; else it is time by the clock. Tables are dropped once in a round, as whoever leads
does it.

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.references [--tasks 1000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import text

from aaiclick.config import reset_settings
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.execution.narrowing import narrowed
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.models import Claim, Done, Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.run_tables import run_table
from aaiclick.orchestration.store import table_drops
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.machine_ids import provide_ids
from benchmarks.setting import SERVERS, fresh_database, machine

NAMES = 1
BLOCKS = 10
"""In a round: as many turns of each kind."""


class Counted:
    """Counts the commits of a database."""

    def __init__(self, database: Database) -> None:
        self.commits = 0
        self._transact = database.transact
        database.transact = self.transact  # type: ignore[method-assign]

    async def transact(self, work: Callable[..., Awaitable[Any]], **options: Any) -> Any:
        self.commits += 1
        return await self._transact(work, **options)


async def submit_chains(coordinator: DirectCoordinator, count: int, width: int) -> None:
    """So many tasks, in so many chains side by side."""
    job = new_job("chains")
    tasks = [Task("benchmarks.bodies.noop") for _ in range(width)]
    for _ in range(count - width):
        tasks.append(Task("benchmarks.bodies.noop", {"x": tasks[-width]}))
    edges = [edge for task in tasks for edge in task.incoming]
    await coordinator.submit(Submission(job.id, tasks=tasks, edges=edges, new_job=job))


async def work_off(
    coordinator: DirectCoordinator,
    worker: int,
    width: int,
    report: Callable[[Claim], Awaitable[Done]],
    clock: Callable[[], float],
) -> list[float]:
    """Claim, run and report all, so many at a time: the seconds a task of each such step."""
    steps = []
    began = clock()
    while claims := await coordinator.claim(worker, limit=width):
        await coordinator.report(worker, [await report(claim) for claim in claims])
        ended = clock()
        steps.append((ended - began) / len(claims))
        began = ended
    return steps


async def plain(claim: Claim) -> Done:
    narrowed(claim)
    return Done(claim.task_id, claim.epoch, json.dumps({"object_type": "pyobj", "value": 1}))


async def drop_all(database: Database) -> None:
    """As whoever leads does, but for the engine's part."""
    while await database.transact(table_drops.mark_unneeded):
        pass
    while names := await database.read(table_drops.next_to_drop):
        await database.transact(lambda session, gone=names: table_drops.forget_tables(session, gone))


async def bare_commits_s(database: Database, count: int, clock: Callable[[], float]) -> list[float]:
    change = text("UPDATE bare SET n = n + 1 WHERE id = 1")
    each = []
    for _ in range(count):
        began = clock()
        await database.transact(lambda session: session.run(change))
        each.append(clock() - began)
    return each


async def measure(kind: str, count: int, rounds: int, width: int) -> None:
    clock = time.process_time if kind == "sqlite" else time.perf_counter
    async with fresh_database(kind) as url:
        database = await Database.open(url)
        counted = Counted(database)
        await provide_ids(database)
        coordinator = DirectCoordinator(database)
        await database.transact(
            lambda session: session.run(text("CREATE TABLE bare (id INTEGER PRIMARY KEY, n BIGINT)"))
        )
        await database.transact(lambda session: session.run(text("INSERT INTO bare VALUES (1, 0)")))
        worker = (await coordinator.register(hostname="bench", pid=1)).id

        async def with_tables(claim: Claim) -> Done:
            inputs = [json.loads(one)["table"] for one in narrowed(claim).inputs.values() if one is not None]
            names = [run_table(claim.task_id, claim.epoch, number) for number in range(1, NAMES + 1)]
            await coordinator.hold(claim, inputs=inputs, outputs=names)
            result = json.dumps({"object_type": "object", "table": names[0]})
            return Done(claim.task_id, claim.epoch, result, holds=True, made=(names[0],))

        ratios, commits = [], []
        for _ in range(rounds):
            bare: list[float] = []
            without: list[float] = []
            held: list[float] = []
            more = 0
            for _ in range(BLOCKS):
                bare += await bare_commits_s(database, count // BLOCKS, clock)
                await submit_chains(coordinator, count // BLOCKS, width)
                before = counted.commits
                without += await work_off(coordinator, worker, width, plain, clock)
                more -= counted.commits - before
                await submit_chains(coordinator, count // BLOCKS, width)
                before = counted.commits
                held += await work_off(coordinator, worker, width, with_tables, clock)
                more += counted.commits - before
            before, began = counted.commits, clock()
            await drop_all(database)
            dropped_s = (clock() - began) / count
            commits.append((more + counted.commits - before) / count)
            bare_s = statistics.median(bare)
            ratios.append((statistics.median(held) - statistics.median(without) + dropped_s) / bare_s)
        await database.close()
    print(
        f"{kind:9} {width:3} at a time: {statistics.median(commits):5.2f} commits more a task, taking"
        f" {statistics.median(ratios):5.2f} bare commits of {bare_s * 1e3:.2f} ms"
        f" (rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)})"
    )


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--databases", nargs="+", default=["sqlite", *SERVERS])
    parser.add_argument("--widths", nargs="+", type=int, default=[1, 50])
    given = parser.parse_args()
    print(machine())
    reset_settings()
    for kind in given.databases:
        for width in given.widths:
            await measure(kind, given.tasks, given.rounds, width)


if __name__ == "__main__":
    asyncio.run(main())
