"""Tables live as long as they are needed: in `job_test` on every database, and through workers of both kinds."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import create_object_from_value, data_context
from aaiclick.orchestration import ajob_test, get_job_result, job, task, worker_main_loop
from tests.orchestration import data_flows as flows
from tests.support.front_door import local, state
from tests.support.shelf import comments, references, tables, tidy

__all__ = ["local", "state"]

LONG = "TEST_LONG" in os.environ
pytestmark = pytest.mark.timeout(3600 if LONG else 120)


@task
async def three_times(rows: Any) -> Any:
    """An Object in, an Object out, and one that is nobody's business."""
    between = await (rows["v"] + 1).materialize()
    return await create_object_from_value([3 * value for value in await between.data()])


@task
async def total_of(rows: Any) -> int:
    return int(await rows.sum().data())


@job("short tasks")
def short_tasks(count: int) -> Any:
    return [total_of(rows=three_times(rows=flows.make(n=3))) for _ in range(count)]


@task
async def makes_many(count: int) -> Any:
    made = [await create_object_from_value([number]) for number in range(count)]
    return await made[-1].data()


@job("many tables")
def many_tables(count: int) -> Any:
    return makes_many(count=count)


@job("a result")
def one_result() -> Any:
    return three_times(rows=flows.make(n=3))


async def test_a_job_whose_result_is_plain_leaves_nothing(local: Path, state: str) -> None:
    ended = await ajob_test(await flows.pipeline.submit(8))
    assert ended.status == "completed", ended.error
    assert await tables() == []
    assert await references() == 0


async def test_a_job_keeps_what_its_result_names_and_nothing_else(local: Path) -> None:
    ended = await ajob_test(await one_result.submit())
    assert ended.status == "completed", ended.error
    (table,) = await tables()
    assert table.endswith("_2")  # the first was between
    assert json.loads((await comments())[table])["installation"]
    assert await references() == 2
    await tidy()
    assert await tables() == [table]


async def test_a_task_may_make_more_tables_than_it_took_names_for(local: Path) -> None:
    ended = await ajob_test(await many_tables.submit(30))
    assert await get_job_result(ended.id) == [29]
    assert await tables() == []
    assert await references() == 0


async def test_a_failed_job_leaves_what_could_be_tried_again_and_no_more(local: Path) -> None:
    ended = await ajob_test(await flows.failing.submit())
    assert ended.status == "failed"
    assert await tables() == []
    assert await references() == 0


@pytest.mark.parametrize("executor", ["inline", "process"])
async def test_short_tasks_through_a_worker_leave_nothing(local: Path, executor: str) -> None:
    small, large = {"inline": (170, 7000), "process": (30, 1000)}[executor]  # three tasks each
    count = large if LONG else small
    submitted = await short_tasks.submit(count)
    async with asyncio.timeout(3000 if LONG else 100):
        await worker_main_loop(executor=executor, concurrency=2, max_tasks=3 * count)
    assert await get_job_result(submitted.id) == [18] * count
    await tidy()
    assert await tables() == []
    assert await references() == 0


async def test_persistent_objects_are_never_touched(local: Path) -> None:
    async with data_context():
        prices = await create_object_from_value([1.5], name="prices")
    ended = await ajob_test(await flows.named.submit())
    assert ended.status == "completed", ended.error
    await tidy()
    assert set(await tables()) == {prices.table, f"j{ended.id}_kept"}
