"""Bodies that make tasks."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aaiclick.data import Object, create_object_from_value
from aaiclick.orchestration import (
    Group,
    TaskResult,
    add_task_to_current_job,
    as_task,
    create_job,
    create_task,
    get_current_context,
    get_task_result,
    job,
    orch_context,
    task,
)
from aaiclick.orchestration.context import Context
from aaiclick.orchestration.models import Task

HERE = __name__


@task
def square(x: int) -> int:
    return x * x


@task
async def total(xs: list[int]) -> int:
    return sum(xs)


@task
def same(x: Any) -> Any:
    return x


@task
async def one(x: int) -> int:
    return square(x=x)


@task
def several(n: int) -> list[int]:
    return [square(x=number) for number in range(n)]


@task
def nested(n: int) -> dict[str, Any]:
    return {"squares": [square(x=number) for number in range(n)], "n": n, "total": total(xs=several(n=n))}


@task
def grouped(n: int) -> Group:
    with Group("squares") as made:
        for number in range(n):
            square(x=number)
    return made


@task
def data_and_tasks(n: int) -> TaskResult:
    return TaskResult(data={"n": n}, tasks=[square(x=n)])


@task
def only_tasks(n: int) -> TaskResult:
    return TaskResult(tasks=[square(x=n), square(x=n + 1)])


@task
def only_data(n: int) -> TaskResult:
    return TaskResult(data=n)


@task
def countdown(n: int) -> Any:
    return n if n == 0 else countdown(n=n - 1)


@task
async def applies(n: int) -> int:
    first, second = create_task(f"{HERE}.square.function", {"x": n}), Task(f"{HERE}.same", {"x": 1}, name="second")
    first >> second
    async with orch_context() as context:
        assert await context.apply([first, second]) == [first, second]
    await get_current_context().apply(square(x=5))
    await add_task_to_current_job(f"{HERE}.square", {"x": 6}, name="added")
    return n


@task
async def applies_by_id(job_id: int) -> None:
    await Context(job_id).apply(create_task(f"{HERE}.square", {"x": 3}))


@task
async def awaits_its_child() -> Any:
    return await get_task_result(as_task(square(x=2)).id)


@task(max_retries=1)
def fails_once(place: str) -> list[int]:
    """Makes two tasks in each of its attempts."""
    made = [square(x=1), square(x=2)]
    marker = Path(place)
    if not marker.exists():
        marker.write_text("was here")
        raise ValueError("the first time")
    return made


@task
def dies_once(place: str) -> list[int]:
    """As the other, but its process is killed."""
    made = [square(x=1), square(x=2)]
    marker = Path(place)
    if not marker.exists():
        marker.write_text("was here")
        os.kill(os.getpid(), signal.SIGKILL)
    return made


@task
def too_many() -> None:
    while True:
        square(x=1)


@task
async def submits_another() -> int:
    return (await create_job("another", create_task(f"{HERE}.square", {"x": 2}))).id


@task
async def starts_a_workflow(n: int) -> int:
    return (await workflow.submit(n=n)).id


@job("inner workflow")
def workflow(n: int) -> int:
    return square(x=n)


@task
def not_importable() -> Task:
    return Task("no_such_module.f", name="nowhere")


@task
def wrong_arguments() -> Task:
    return Task(f"{HERE}.square", {"y": 1})


@task
async def hands_on_an_object() -> int:
    made = await create_object_from_value([1, 2, 3])
    child = count_rows(rows=made)
    del made
    gc.collect()
    await asyncio.sleep(0)
    return child


@task
async def count_rows(rows: Object) -> int:
    return await rows.count()


@job("growing")
def growing(n: int = 3) -> dict[str, Any]:
    return {
        "one": one(x=n),
        "several": several(n=n),
        "nested": nested(n=n),
        "grouped": grouped(n=n),
        "data": data_and_tasks(n=n),
        "only tasks": only_tasks(n=n),
        "only data": only_data(n=n),
        "countdown": countdown(n=n),
        "total": total(xs=several(n=n)),
        "of a group": total(xs=grouped(n=n)),
        "seen": same(x=nested(n=n)),
    }


EXPECTED = {
    "one": 9,
    "several": [0, 1, 4],
    "nested": {"squares": [0, 1, 4], "n": 3, "total": 5},
    "grouped": [0, 1, 4],
    "data": {"n": 3},
    "only tasks": [9, 16],
    "only data": 3,
    "countdown": 0,
    "total": 5,
    "of a group": 5,
    "seen": {"squares": [0, 1, 4], "n": 3, "total": 5},
}


# ---------------------------------------------------------------- what a process keeps from run to run

KEPT: list[Task] = []
SHARED: dict[str, Group] = {}


@task
def keeps(n: int) -> Task:
    KEPT.append(as_task(square(x=n)))
    return KEPT[0]


@task
def joins(group_id: int) -> Task:
    return Task(square.entrypoint, {"x": 5}, group_id=group_id)


@task
def opens_a_group() -> Group:
    with Group("open") as group:
        square(x=2)
        joins(group_id=group.id)
    return group


@task(max_retries=1)
def fills_a_shared_group(place: str) -> Group:
    with SHARED[place]:
        square(x=7)
    if not Path(place).exists():
        Path(place).touch()
        raise RuntimeError("once")
    return SHARED[place]


@task
def names_a_function(name: str, where: str) -> Task:
    """Makes a task of a function that an argument names: here, or on a thread that knows nothing of the run."""
    if where == "here":
        return create_task(name)
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(create_task, name).result()


@task
async def names_a_function_later(name: str) -> Task:
    return create_task(name)
