"""Operators through workers: with children and a gateway, on every database; parts that run again; rows that change."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.data.gateway import serve_directory
from aaiclick.orchestration import (
    ajob_test,
    clear_task,
    get_job,
    get_job_result,
    get_tasks_for_job,
    worker_main_loop,
)
from tests.orchestration import operator_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]


async def through_workers(job: Any, tasks: int, executor: str = "process") -> Any:
    async with asyncio.timeout(100):
        await worker_main_loop(executor=executor, concurrency=2, max_tasks=tasks, control=False)
    ended = await get_job(job.id)
    assert ended is not None
    assert ended.status == "completed", ended.error
    return await get_job_result(job.id)


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A ClickHouse server cannot be had here: the gateway speaks its protocol."""
    serving = await asyncio.to_thread(serve_directory, tmp_path / "served", port=0)
    assert serving is not None
    where = serving.endpoint
    address = where.tcp.removeprefix("http://")
    monkeypatch.setenv("AAICLICK_CH_URL", f"clickhouse://{where.user}:{where.password}@{address}/default")
    reset_settings()
    yield
    await asyncio.to_thread(serving.close)


async def test_through_children(local: Path, state: str, server: None) -> None:
    job = await flows.chain.submit(7)
    count = 1 + (1 + 3 + 1) + (1 + 1) + (1 + 2 + 1) + 3 + (1 + 4 + 2 + 1)
    doubled, even, summed = await through_workers(job, count)
    assert doubled["data"] == [x * 2 for x in range(7)]
    assert even["data"] == []
    assert summed["data"] == 42


async def test_there_are_two_parts_for_each_slot_where_the_rows_are_enough(local: Path, server: None) -> None:
    count = 400_001
    job = await flows.apply_one.submit("reduce", f"{flows.__name__}.total", count)
    parts = 4  # of two slots
    found = await through_workers(job, 1 + (1 + parts + 1) + 1)
    assert found["data"] == count * (count - 1) // 2
    layers = Counter(task.name for task in await get_tasks_for_job(job.id))
    assert [layers[f"part {number}"] for number in range(parts + 1)] == [2, 1, 1, 1, 0]


async def test_a_part_that_runs_again_adds_nothing_twice(local: Path) -> None:
    kept = flows.apply_one.options(preservation_mode="FULL")
    job = await kept.submit("map", f"{flows.__name__}.double", 10, {"partition": 4})
    ended = await ajob_test(job)
    assert ended.status == "completed", ended.error
    (part,) = [task for task in await get_tasks_for_job(job.id) if task.name == "part 1"]
    await clear_task(part.id)
    again = await ajob_test(job)
    assert again.status == "completed", again.error
    assert (await get_job_result(job.id))["data"] == [x * 2 for x in range(10)]


async def test_rows_that_come_meanwhile_are_in_no_part(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value(list(range(10)))
        job = await flows.growing.submit(rows)
        ended = await ajob_test(job)
        assert ended.status == "completed", ended.error
        found = (await get_job_result(job.id))["data"]
    assert Counter(found) == Counter(x * 2 for x in range(10))
