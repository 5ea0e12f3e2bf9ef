"""Tasks that make tasks: through `job_test` on every database, through workers with children, and killed on the way."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aaiclick.orchestration import (
    ajob_test,
    clear_task,
    create_job,
    get_job,
    get_job_result,
    get_task_result,
    worker_main_loop,
)
from tests.orchestration import growing_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]


async def test_whatever_a_task_returns_its_consumers_receive(local: Path, state: str) -> None:
    ended = await ajob_test(await flows.growing.submit())
    assert ended.status == "completed", ended.error
    assert await get_job_result(ended.id) == flows.EXPECTED


@pytest.mark.parametrize("executor", ["inline", "process"])
async def test_through_a_worker(local: Path, state: str, executor: str) -> None:
    ended = await flows.growing.submit()
    async with asyncio.timeout(100):
        working = asyncio.create_task(worker_main_loop(executor=executor, concurrency=2))
        while (found := await get_job(ended.id)) is not None and found.completed_at is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert await get_job_result(ended.id) == flows.EXPECTED


async def test_a_parent_whose_process_is_killed_leaves_one_set(local: Path, tmp_path: Path) -> None:
    job = await create_job("job", flows.dies_once(place=str(tmp_path / "marker")))
    async with asyncio.timeout(100):
        await worker_main_loop(executor="process", concurrency=1, max_tasks=4, control=True)
    found = await get_job(job.id)
    assert found is not None
    assert (found.status, found.total_tasks) == ("completed", 3)
    assert await get_task_result(found.tasks[0].id) == [1, 4]


@pytest.fixture
def shallow_stack() -> Iterator[int]:
    """How deep calls may go: less than usual, so that a chain that is too long for recursion is still a short one."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield sys.getrecursionlimit()
    sys.setrecursionlimit(usual)


async def test_a_long_chain_of_tasks_that_return_tasks(local: Path, shallow_stack: int) -> None:
    depth = shallow_stack + 100
    job = await create_job("job", tasks=[flows.same(x=flows.countdown(n=depth))])
    ended = await ajob_test(job)
    assert ended.status == "completed", ended.error
    assert ended.total_tasks == depth + 2
    (last,) = [task for task in ended.tasks if task.name == "same"]
    assert await get_task_result(last.id) == 0


async def test_a_cleared_parent_makes_its_tasks_anew(local: Path, state: str) -> None:
    ended = await ajob_test(await flows.growing.submit())
    before = {task.id for task in ended.tasks}
    parents = [task for task in ended.tasks if task.name in ("nested", "grouped")]
    for parent in parents:
        await clear_task(parent.id)
    again = await ajob_test(ended)
    assert again.status == "completed", again.error
    assert again.total_tasks == ended.total_tasks
    assert await get_job_result(again.id) == flows.EXPECTED
    assert before - {task.id for task in again.tasks}
