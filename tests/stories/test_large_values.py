"""Values beyond the limit of the state lie beside the job's tables, and arrive as what they were."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.data.objects import Object
from aaiclick.errors import Conflict, InputsGone, ValueTooLarge
from aaiclick.orchestration import (
    TaskResult,
    ajob_test,
    clear_task,
    create_job,
    get_job_result,
    get_task_result,
    get_tasks_for_job,
    job,
    register_job,
    run_job,
    task,
    worker_main_loop,
)
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.control.table_dropper import TableDropper
from aaiclick.orchestration.registered_jobs import run_job_from_json
from aaiclick.orchestration.rules.values.encoding import encode_value
from tests.support.front_door import local, state
from tests.support.travelling import Config

__all__ = ["local", "state"]

LIMIT = 2_000
MIXED = {"rows": [1, "zwei", None, 3.5, {"x": (1, 2)}] * 500, "config": Config(tags=["a"] * 900)}


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AAICLICK_VALUE_BYTES_MAX", str(LIMIT))
    monkeypatch.setenv("AAICLICK_BLOB_BYTES_MAX", "200000")
    reset_settings()
    yield
    reset_settings()


async def tables() -> list[str]:
    async with data_context() as context:
        found = await context.client.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")
        return sorted(found.columns[0])


async def drop_unneeded() -> None:
    async with connected() as database:
        await TableDropper(database).drop_unneeded()


@task
def echo(value: Any) -> Any:
    return value


@task
async def echo_later(value: Any) -> Any:
    return value


@task
def numbers(n: int) -> list[int]:
    return list(range(n))


@task
def summed(rows: list[int]) -> list[Any]:
    return [type(rows).__name__, len(rows), sum(rows)]


@task
async def counted(rows: Object) -> list[Any]:
    return [type(rows).__name__, await rows.count()]


@task
def grows(value: Any) -> Any:
    return summed(value)


@task
def fails_once(value: Any, key: str) -> Any:
    if key not in SEEN:
        SEEN.add(key)
        raise RuntimeError("once")
    return len(value)


SEEN: set[str] = set()


@job
def passing(value: Any) -> Any:
    return [echo(value), echo_later(echo(value))]


@job
def lists(n: int) -> Any:
    as_rows: Any = numbers(n)  # a long list is taken as an Object too
    return [summed(numbers(n)), counted(as_rows), summed(list(range(n)))]


@job
def growing(n: int) -> Any:
    return grows(numbers(n))


@job
def retried(n: int, key: str) -> Any:
    return fails_once.options(max_retries=1)(numbers(n), key)


@job
def large_beside_an_object(rows: Any) -> Any:
    return echo({"rows": rows, "text": "x" * 5_000})


@job
def a_tasks_result_inside(n: int) -> Any:
    return echo({"inner": numbers(n), "text": "y" * 5_000})


@job
def returned_itself(value: Any) -> Any:
    return value


@job
def returned_length(value: str) -> int:
    return len(value)


@job
def returned_with_tasks(n: int, value: Any) -> Any:
    return {"sums": summed(numbers(n)), "text": "y" * 5_000, "value": value}


@job
def handed_on(n: int) -> TaskResult:
    return TaskResult(tasks=[numbers(n), numbers(1)])


async def result_of(workflow: Any, *args: Any) -> Any:
    ended = await ajob_test(workflow, *args)
    assert ended.status == "completed", ended.error
    return await get_job_result(ended.id)


async def test_a_mixed_value_arrives_as_it_was(state: str, local: Path) -> None:
    assert await result_of(passing, MIXED) == [MIXED, MIXED]


async def test_an_annotation_is_a_promise(local: Path) -> None:
    for n in (3, 5_000):
        expected = ["list", n, sum(range(n))]
        assert await result_of(lists, n) == [expected, ["Object", n], expected]


async def test_tasks_that_a_task_makes_get_large_arguments(local: Path) -> None:
    assert await result_of(growing, 5_000) == ["list", 5_000, sum(range(5_000))]
    assert await result_of(handed_on, 5_000) == [list(range(5_000)), [0]]


@pytest.mark.parametrize("executor", ["inline", "process"])
async def test_workers_write_and_read_them(local: Path, executor: str) -> None:
    first, second = await passing.submit(MIXED), await growing.submit(5_000)
    async with asyncio.timeout(100):
        await worker_main_loop(executor=executor, concurrency=2, max_tasks=6, control=False)
    assert await get_job_result(first.id) == [MIXED, MIXED]
    assert await get_job_result(second.id) == ["list", 5_000, sum(range(5_000))]


async def test_the_state_has_a_reference_only(local: Path) -> None:
    ended = await ajob_test(passing, MIXED)
    for made in await get_tasks_for_job(ended.id):
        assert len(made.kwargs_json) < LIMIT
        assert len(made.result_json or "") < LIMIT
    results = [made for made in await get_tasks_for_job(ended.id) if made.name == "echo_later"]
    assert await get_task_result(results[0].id) == MIXED


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_at_the_limit(local: Path, more: int) -> None:
    room = LIMIT - len(encode_value("", bytes_max=LIMIT))
    value = "x" * (room + more)
    ended = await ajob_test(passing, value)
    assert await get_job_result(ended.id) == [value, value]
    texts = [made.result_json or "" for made in await get_tasks_for_job(ended.id)]
    assert ["blob" in text for text in texts] == [more > 0] * 3


async def test_beyond_the_second_limit_it_is_refused_with_its_size(local: Path) -> None:
    with pytest.raises(ValueTooLarge, match=r"kwargs.* bytes, more than the limit of 200000.*AAICLICK_BLOB_BYTES_MAX"):
        echo("x" * 200_001)
    ended = await ajob_test(handed_on, 100_000)
    assert ended.status == "failed"
    failed = [made.error or "" for made in await get_tasks_for_job(ended.id)]
    assert any("ValueTooLarge: result takes" in error for error in failed)


# ---------------------------------------------------------------- what a workflow returns itself


async def test_a_workflow_returns_a_large_value_itself(state: str, local: Path) -> None:
    assert await result_of(returned_itself, MIXED) == MIXED
    made = await returned_itself.submit(MIXED)  # it has no tasks, and has completed
    assert made.status == "completed"
    assert len(made.result_json or "") < LIMIT
    assert await get_job_result(made.id) == MIXED
    assert len(await tables()) == 2


async def test_tasks_and_objects_in_a_large_value_of_a_workflow_are_what_they_give(local: Path) -> None:
    async with data_context():
        made = await returned_with_tasks.submit(5_000, await create_object_from_value([1, 2, 3]))
    ended = await ajob_test(made)
    assert ended.status == "completed", ended.error
    async with data_context():
        result = await get_job_result(ended.id)
        assert result["sums"] == ["list", 5_000, sum(range(5_000))]
        assert await result["value"].data() == [1, 2, 3]
    assert result["text"] == "y" * 5_000


async def test_an_object_that_a_workflow_returns_itself_outlives_its_context(local: Path) -> None:
    async with data_context():
        made = await returned_itself.submit({"rows": await create_object_from_value([1, 2, 3])})
    async with data_context():
        assert await (await get_job_result(made.id))["rows"].data() == [1, 2, 3]


async def test_what_a_workflow_returned_itself_outlives_a_clear(local: Path) -> None:
    ended = await ajob_test(returned_with_tasks, 3, 1)
    before = await get_job_result(ended.id)
    await clear_task((await get_tasks_for_job(ended.id))[-1].id)
    await drop_unneeded()
    async with asyncio.timeout(100):
        await worker_main_loop(executor="inline", concurrency=1, max_tasks=1, control=False)
    assert await get_job_result(ended.id) == before


async def test_a_key_that_is_known_leaves_no_table(local: Path) -> None:
    keyed = returned_itself.options(key="once")
    first = await keyed.submit(MIXED)
    assert (await keyed.submit(MIXED)).id == first.id
    await drop_unneeded()
    assert len(await tables()) == 1
    assert await get_job_result(first.id) == MIXED


async def test_a_submission_that_is_refused_leaves_no_table(local: Path) -> None:
    keyed = returned_itself.options(key="once")
    first = await keyed.submit(MIXED)
    with pytest.raises(Conflict):
        await keyed.submit("x" * 5_000)
    await drop_unneeded()
    assert len(await tables()) == 1
    assert await get_job_result(first.id) == MIXED


async def test_beyond_the_second_limit_a_workflow_is_refused_too(local: Path) -> None:
    keyed = returned_length.options(key="once")
    with pytest.raises(ValueTooLarge, match=r"kwargs takes .*limit of 200000.*AAICLICK_BLOB_BYTES_MAX"):
        await keyed.submit("x" * 200_001)
    for submitted in (returned_itself.submit("x" * 200_001), ajob_test(returned_itself, "x" * 200_001)):
        with pytest.raises(ValueTooLarge, match=r"result takes .* bytes, .*limit of 200000.*AAICLICK_BLOB_BYTES_MAX"):
            await submitted
    with pytest.raises(ValueTooLarge, match=r"kwargs takes .* bytes, .*limit of 200000.*AAICLICK_BLOB_BYTES_MAX"):
        await run_job("large", echo, {"value": "x" * 200_001})
    assert await tables() == []


# ---------------------------------------------------------------- what is given to one


async def test_run_job_takes_large_arguments(local: Path) -> None:
    first = await run_job("a task", echo, {"value": MIXED})
    second = await run_job("a workflow", passing, {"value": MIXED}, key="once")
    assert (await run_job("a workflow", passing, {"value": MIXED}, key="once")).id == second.id
    async with data_context():
        third = await run_job("an Object", counted, {"rows": await create_object_from_value([1, 2, 3])})
    async with asyncio.timeout(100):
        await worker_main_loop(executor="inline", concurrency=2, max_tasks=6, control=False)
    assert await get_job_result(first.id) == MIXED
    assert await get_job_result(second.id) == [MIXED, MIXED]
    assert await get_job_result(third.id) == ["Object", 3]


async def test_create_job_takes_large_arguments(local: Path) -> None:
    assert await get_job_result((await ajob_test(await create_job("one", echo, kwargs={"value": MIXED}))).id) == MIXED


async def test_defaults_of_a_registered_job_stay_small(local: Path) -> None:
    with pytest.raises(ValueTooLarge, match=r"kwargs takes .* AAICLICK_VALUE_BYTES_MAX"):
        await register_job("large", echo, default_kwargs={"value": "x" * LIMIT})
    half = "x" * (LIMIT // 2)
    await register_job("half", echo, default_kwargs={"value": half})
    made = await run_job("half", kwargs={"value": MIXED})
    assert await get_job_result((await ajob_test(made)).id) == MIXED


async def test_what_is_read_from_json_is_refused_beyond_the_first_limit(local: Path) -> None:
    with pytest.raises(ValueTooLarge, match=r"kwargs takes .* AAICLICK_VALUE_BYTES_MAX"):
        await run_job_from_json("large", f"{__name__}.echo", {"value": "x" * LIMIT})


async def test_what_nobody_needs_is_dropped_and_results_stay(local: Path) -> None:
    ended = await ajob_test(lists, 5_000)
    assert await tables() == []
    ended = await ajob_test(passing, MIXED)
    assert len(await tables()) == 2  # what the job returned
    assert await get_job_result(ended.id) == [MIXED, MIXED]


async def test_a_retry_and_a_clear_find_their_inputs(local: Path) -> None:
    ended = await ajob_test(retried, 5_000, f"retry {local}")
    assert await get_job_result(ended.id) == 5_000
    last = next(made for made in await get_tasks_for_job(ended.id) if made.name == "fails_once")
    await clear_task(last.id, upstream=True)
    async with asyncio.timeout(100):
        await worker_main_loop(executor="inline", concurrency=1, max_tasks=2, control=False)
    assert await get_job_result(ended.id) == 5_000


async def test_a_clear_that_would_not_find_its_input_is_refused(local: Path) -> None:
    ended = await ajob_test(passing, MIXED)
    given = next(made for made in await get_tasks_for_job(ended.id) if made.name == "echo")
    with pytest.raises(InputsGone, match=f"task 'echo' .{given.id}. needs t"):
        await clear_task(given.id)


async def test_what_it_refers_to_comes_with_it(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value([1, 2, 3])
        made = await large_beside_an_object.submit(rows)
    ended = await ajob_test(made)
    async with data_context():
        result = await get_job_result(ended.id)
        assert await result["rows"].data() == [1, 2, 3]
        assert result["text"] == "x" * 5_000
    assert await result_of(a_tasks_result_inside, 5_000) == {"inner": list(range(5_000)), "text": "y" * 5_000}


async def test_arrays_arrive_as_they_were(local: Path) -> None:
    value = np.arange(10_000, dtype=">i4").reshape(100, 100).T
    first, _ = await result_of(passing, value)
    assert (first.dtype, first.flags.f_contiguous, first.tolist()) == (value.dtype, True, value.tolist())


async def test_megabytes(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_BLOB_BYTES_MAX", "100000000")
    reset_settings()
    value = ["ä" * 1_000_000] * (25 if "TEST_LONG" in os.environ else 3)
    assert await result_of(passing, value) == [value, value]
