"""What it costs to keep tables alive: tasks with one input and one output Object, beside the same with plain values.

Chains of tasks, each reading the table of the one before and making one, reported as they end: without bodies and
without an engine, so that nothing but the bookkeeping differs. The unit is a bare commit: one row of a table of two
columns, changed in a transaction of the same pool. The three take turns of so many tasks (--turn), and medians are
compared: what else the machine does meanwhile falls on all of them. With turns of one, each finds the processor's
caches full of the others, as in a worker; with turns of a hundred each is at its best, a bare commit most of all.

On SQLite, where all happens in this process and no commit waits for the disk, it is processor time; else it is time by
the clock. Tables are dropped once in a round, as whoever leads does it. A body asks for its table if that was not
registered with its claim, as real ones do: the first of a chain has no input.

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.references [--tasks 1000] [--turn 1]
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
from aaiclick.orchestration.coordinator.machine_ids import provide_ids
from aaiclick.orchestration.execution.runs.claim_inputs import narrowed
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.models import Claim, Done, Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.values.run_tables import run_table
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.retention import table_drops
from benchmarks.setting import SERVERS, fresh_database, machine

PLAIN, HELD = 1, 2
"""From where the tasks of each kind are claimed."""

BARE = text("UPDATE bare SET n = n + 1 WHERE id = 1")


class Counted:
    """Counts the commits of a database."""

    def __init__(self, database: Database) -> None:
        self.commits = 0
        self._transact = database.transact
        database.transact = self.transact  # type: ignore[method-assign]

    async def transact(self, work: Callable[..., Awaitable[Any]], **options: Any) -> Any:
        self.commits += 1
        return await self._transact(work, **options)


async def submit_chains(coordinator: DirectCoordinator, count: int, width: int, reserved_for: int) -> None:
    """So many tasks, in so many chains side by side."""
    job = new_job("chains", reserved_for=reserved_for)
    tasks = [Task("benchmarks.bodies.noop") for _ in range(width)]
    for _ in range(count - width):
        tasks.append(Task("benchmarks.bodies.noop", {"x": tasks[-width]}))
    edges = [edge for task in tasks for edge in task.incoming]
    await coordinator.submit(Submission(job.id, tasks=tasks, edges=edges, new_job=job))


async def step(
    coordinator: DirectCoordinator,
    counted: Counted,
    worker: int,
    width: int,
    reserved_for: int,
    report: Callable[[Claim], Awaitable[Done]],
) -> int:
    """Claim, run and report so many; gives how many there were."""
    claims = await coordinator.claim(worker, limit=width, reserved_for=reserved_for)
    if any(claim.registered for claim in claims) and coordinator.database.dialect.tables.at_once:
        counted.commits += 1  # what is registered with a claim that has committed by itself
    if claims:
        await coordinator.report(worker, [await report(claim) for claim in claims])
    return len(claims)


async def plain(claim: Claim) -> Done:
    narrowed(claim)
    return Done(claim.task_id, claim.epoch, json.dumps({"object_type": "pyobj", "value": 1}))


async def drop_all(database: Database) -> None:
    """As whoever leads does, but for the engine's part."""
    while await database.transact(table_drops.mark_unneeded):
        pass
    while names := await database.read(table_drops.next_to_drop):
        await database.transact(lambda session, gone=names: table_drops.forget_tables(session, gone))


async def bare_commit(database: Database) -> None:
    await database.transact(lambda session: session.run(BARE))


async def measure(kind: str, count: int, rounds: int, width: int, turn: int) -> None:
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
            narrowed(claim)
            name = run_table(claim.task_id, claim.epoch, 1)
            if not claim.registered:
                await coordinator.hold(claim, [name])
            result = json.dumps({"object_type": "object", "table": name})
            return Done(claim.task_id, claim.epoch, result, holds=True, made=(name,))

        async def timed(work: Awaitable[int | None], each: list[float]) -> int:
            before, began = counted.commits, clock()
            done = await work
            each.append((clock() - began) / (done or 1))
            return counted.commits - before

        ratios, commits = [], []
        for _ in range(rounds):
            bare: list[float] = []
            without: list[float] = []
            held: list[float] = []
            more = 0
            await submit_chains(coordinator, count, width, PLAIN)
            await submit_chains(coordinator, count, width, HELD)
            steps = max(turn // width, 1)
            for _ in range(count // width // steps):
                for _ in range(steps):
                    await timed(bare_commit(database), bare)
                for _ in range(steps):
                    more -= await timed(step(coordinator, counted, worker, width, PLAIN, plain), without)
                for _ in range(steps):
                    more += await timed(step(coordinator, counted, worker, width, HELD, with_tables), held)
            before, began = counted.commits, clock()
            await drop_all(database)
            dropped_s = (clock() - began) / count
            commits.append((more + counted.commits - before) / count)
            bare_s = statistics.median(bare)
            ratios.append((statistics.median(held) - statistics.median(without) + dropped_s) / bare_s)
        await database.close()
    print(
        f"{kind:9} {width:3} at a time, turns of {turn}: {statistics.median(commits):5.2f} commits more a task, taking"
        f" {statistics.median(ratios):5.2f} bare commits of {bare_s * 1e3:.2f} ms"
        f" (rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)})"
    )


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=int, default=1)
    parser.add_argument("--databases", nargs="+", default=["sqlite", *SERVERS])
    parser.add_argument("--widths", nargs="+", type=int, default=[1, 50])
    given = parser.parse_args()
    print(machine())
    reset_settings()
    for kind in given.databases:
        for width in given.widths:
            await measure(kind, given.tasks, given.rounds, width, given.turn)


if __name__ == "__main__":
    asyncio.run(main())
