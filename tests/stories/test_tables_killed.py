"""kill -9 of workers anywhere between produce, pin, consume and drop: no input is lost, and nothing is left."""

from __future__ import annotations

import asyncio
import json
import os
import random
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.control.table_sweeper import TableSweeper
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.tables import table_context_refs, table_pin_refs, table_run_refs, tasks
from tests.support.fleet import Fleet, eventually
from tests.support.served import engine, fleet
from tests.support.shelf import tables

__all__ = ["engine", "fleet"]

LONG = "TEST_LONG" in os.environ
pytestmark = pytest.mark.timeout(600 if LONG else 120)
SEEDS = range(20 if LONG else 1)
CHAINS = 12
KILLS = 8 if LONG else 4
AT_ONCE = RetryPolicy(max_retries=100, delay_s=0.0)
FLOWS = "tests.orchestration.data_flows"


def chain(number: int) -> list[Task]:
    """Three Objects, one made of the other, and what is read in the end."""

    def step(body: str, **kwargs: Any) -> Task:
        return Task(f"{FLOWS}.{body}", kwargs, name=f"{body}{number}", retry=AT_ONCE)

    made = step("make", n=number + 3)
    small = step("narrow", rows=made)
    return [made, small, total := step("total", rows=small), step("read", rows=total)]


async def known(fleet: Fleet) -> int:
    found = [await fleet.rows(select(table)) for table in (table_context_refs, table_run_refs, table_pin_refs)]
    return sum(map(len, found))


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("executor", ["process", "inline"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_workers_are_killed_anywhere(fleet: Fleet, engine: None, executor: str, seed: int) -> None:
    dice = random.Random(seed)
    living = await fleet.workers(2, "--executor", executor)
    job = await fleet.submit(*(task for number in range(CHAINS) for task in chain(number)))
    for _ in range(KILLS):
        await asyncio.sleep(dice.uniform(0.0, 0.8))
        victim = living.pop(dice.randrange(len(living)))
        victim.kill()
        living.append(fleet.start_worker("--executor", executor))
    ended = await fleet.end_of(job)
    assert ended.status == "completed", [row.error for row in await fleet.rows(select(tasks.c.error)) if row.error]
    rows = [row for name, row in (await fleet.tasks(job)).items() if name.startswith("read")]
    sums = [json.loads(row.result)["value"]["data"]["v"] for row in rows]
    assert sorted(map(sum, sums)) == sorted(sum(range(3, number + 3)) for number in range(CHAINS))

    async def nothing_is_left() -> bool:
        await TableSweeper(fleet.database).sweep()  # what a killed body made after it was given up
        return not await known(fleet) and not await tables()

    await eventually(nothing_is_left, fleet.explain, seconds=60)
