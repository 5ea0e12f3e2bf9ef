"""Tasks whose results are remembered: in `job_test` on every database, and through workers, inline and in children."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest

from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context, delete_object, open_object
from aaiclick.orchestration import (
    Cache,
    Job,
    Task,
    ajob_test,
    as_task,
    clear_cache,
    clear_task,
    collect_metrics,
    create_job,
    create_task,
    get_events_for_job,
    get_job_result,
    get_task_result,
    get_tasks_for_job,
    list_cache,
    run_job,
    worker_main_loop,
)
from aaiclick.orchestration.rules.secrets import Secret
from tests.orchestration import cached_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What ran since it was asked last."""
    file = tmp_path / "ran"
    monkeypatch.setenv(flows.RAN, str(file))

    def read() -> list[str]:
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    return read


async def outcome_of(job: Any) -> Any:
    ended = await ajob_test(job)
    assert ended.status == "completed", ended.error
    return await get_job_result(ended.id)


async def one(call: Any, **options: Any) -> Any:
    """The result of a job with this one task."""
    return await outcome_of(await create_job("one", as_task(call), **options))


async def tasks_of(job: Job) -> dict[str, Task]:
    return {task.name: task for task in await get_tasks_for_job(job.id)}


# ---------------------------------------------------------------- Objects that change


async def test_what_is_remembered_does_not_change(local: Path, state: str, ran: Any) -> None:
    """Neither in the job that made it nor in others: they would be given what was never returned."""
    for _ in range(2):
        bad = as_task(flows.adds_row(flows.rows(3)))
        ended = await ajob_test(await create_job("bad", bad))
        assert (ended.status, "remembered result" in str(ended.error)) == ("failed", True), ended.error
        assert await one(flows.plain_total(flows.rows(3))) == 3
    assert await one(flows.adds_row(flows.rows(3), copied=True)) == 1003
    assert await one(flows.adds_row_to_each(flows.handed_on(flows.rows(3)))) == ["InputError", "InputError"]
    assert await one(flows.plain_total(flows.rows(3))) == 3
    assert await one(flows.adds_row(flows.plain_rows(3))) == 1003, "what is not remembered may change"
    assert ran() == ["rows 3"]


async def test_an_object_that_others_have_changed_is_another_argument(local: Path, state: str, ran: Any) -> None:
    made = flows.plain_rows(3)
    before, same = as_task(flows.total(made)), as_task(flows.total(made))
    change, after = as_task(flows.adds_row(made)), as_task(flows.total(made))
    before >> same >> change >> after
    ended = await ajob_test(await create_job("changes", after))
    assert ended.status == "completed", ended.error
    found = [await get_task_result(each.id) for each in (before, same, after)]
    assert (found, ran()) == ([3, 3, 1003], ["total", "total"])


# ---------------------------------------------------------------- hits and misses


async def test_the_same_call_runs_once_across_jobs(local: Path, state: str, ran: Any) -> None:
    first, second = await flows.doubling.submit(4), await flows.doubling.submit(4)
    assert [await outcome_of(first), await outcome_of(second)] == [8, 8]
    assert ran() == ["double 4"]
    (hit,) = (await tasks_of(second)).values()
    assert (hit.cache_outcome, hit.cached_from_id) == ("hit", (await tasks_of(first))["double"].id)
    assert "cache_hit" in [event.move for event in await get_events_for_job(second.id)]
    assert await one(flows.double(5)) == 10
    assert ran() == ["double 5"]
    counted = (await collect_metrics()).counters
    assert (counted["task_cache_hits_total"], counted["task_cache_misses_total"]) == (1, 2)


async def test_objects_are_handed_on_from_one_job_to_another(local: Path, state: str, ran: Any) -> None:
    assert await outcome_of(await flows.sums.submit(5)) == 10
    assert sorted(ran()) == ["rows 5", "total"]
    assert await outcome_of(await flows.sums.submit(5)) == 10, "an Object that was remembered is the same argument"
    assert await outcome_of(await flows.plain_sums.submit(5)) == 10, "and it is there for a body that runs"
    assert ran() == []
    assert sorted(entry.tables for entry in await list_cache()) == [0, 1]
    assert await clear_cache() == 2
    assert await outcome_of(await flows.sums.submit(5)) == 10
    assert sorted(ran()) == ["rows 5", "total"]


async def test_failures_are_not_remembered_and_attempts_look_again(local: Path, ran: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "there")
    failed = await ajob_test(await create_job("one", as_task(flows.fails_first(path))))
    assert failed.status == "failed"
    assert await list_cache() == []
    for _ in range(2):
        assert await one(flows.fails_first(path)) == "fine"
    assert ran() == ["fails_first"] * 2


async def test_a_key_takes_the_place_of_the_arguments(local: Path, ran: Any) -> None:
    assert await one(flows.by_key("ann", "monday", noise=0.5)) == "ann monday 0.5"
    assert await one(flows.by_key("ann", "monday", noise=0.7)) == "ann monday 0.5"
    assert await one(flows.by_key("bob", "monday")) == "bob monday 0.0"
    assert [await one(flows.by_function(x)) for x in (2, 3, 4, 5)] == [2, 3, 2, 3]
    assert ran() == ["by_key ann monday", "by_key bob monday", "by_function 2", "by_function 3"]
    assert {entry.label for entry in await list_cache(flows.by_key)} == {"ann-monday", "bob-monday"}


async def test_a_result_may_be_remembered_within_its_job_only(local: Path, ran: Any) -> None:
    a, b = as_task(flows.in_job(1)), as_task(flows.in_job(1))
    a >> b
    await outcome_of(await create_job("two", tasks=[a, b]))
    await outcome_of(await create_job("again", tasks=[as_task(flows.in_job(1))]))
    assert ran() == ["in_job 1"] * 2


async def test_calls_choose_for_themselves(local: Path, ran: Any) -> None:
    uncached = flows.double.options(cache=False)
    for _ in range(2):
        assert await one(uncached(1)) == 2
    assert ran() == ["double 1"] * 2
    cached = flows.uncached.options(cache=Cache(ttl=60, key=flows.parity))
    assert [await one(cached(x)) for x in (2, 4)] == [2, 2]
    made = [create_task(flows.uncached, {"x": 7}, cache=60) for _ in range(2)]
    assert [await one(task) for task in made] == [7, 7]
    assert ran() == ["uncached 2", "uncached 7"]


async def test_jobs_refresh_or_do_without(local: Path, ran: Any) -> None:
    modes: list[tuple[Literal["use", "refresh", "off"], int]]
    modes = [("use", 1), ("use", 0), ("refresh", 1), ("use", 0), ("off", 1)]
    for mode, expected in modes:
        await outcome_of(await flows.doubling.options(cache_mode=mode).submit(3))
        assert ran() == ["double 3"] * expected, mode
    job = await run_job("d", flows.double, {"x": 3}, cache_mode="off")
    assert (job.cache_mode, await outcome_of(job), ran()) == ("off", 6, ["double 3"])


async def test_what_is_cleared_runs(local: Path, ran: Any) -> None:
    job = await flows.doubling.submit(3)
    await outcome_of(job)
    ((task),) = (await tasks_of(job)).values()
    await clear_task(task.id)
    await outcome_of(job)
    assert ran() == ["double 3"] * 2
    assert (await tasks_of(job))["double"].cache_outcome == "refresh"


async def test_secrets_count_by_their_names(local: Path, ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"LOGIN_A": "first-value", "LOGIN_B": "another-value"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    assert await one(flows.with_secret(Secret("env:LOGIN_A"))) == 11
    monkeypatch.setenv("LOGIN_A", "a-changed-value")
    assert await one(flows.with_secret(Secret("env:LOGIN_A"))) == 11, "the name is the same"
    assert await one(flows.with_secret(Secret("env:LOGIN_B"))) == 13
    assert ran() == ["with_secret"] * 2


async def test_tasks_that_make_tasks_are_not_remembered(local: Path, ran: Any) -> None:
    for _ in range(2):
        await one(flows.grows(1))
    assert ran() == ["grows 1", "uncached 1"] * 2


async def test_a_named_object_counts_by_what_it_contains(local: Path, ran: Any) -> None:
    async def total() -> Any:
        async with data_context():
            return await outcome_of(await create_job("t", as_task(flows.total(await open_object("numbers")))))

    async with data_context():
        await create_object_from_value({"n": [1, 2, 3]}, name="numbers")
    assert [await total(), await total()] == [6, 6]
    assert ran() == ["total"]
    async with data_context():
        await (await open_object("numbers")).insert({"n": [4]})
    assert await total() == 10
    async with data_context():
        await delete_object("numbers")


# ---------------------------------------------------------------- idempotency keys


async def test_a_key_is_handed_to_the_body_and_remembers_the_result(local: Path, state: str, ran: Any) -> None:
    assert await one(flows.charge(5, 9.5)) == "charge-5: 9.5"
    assert await one(flows.charge(5, 9.5)) == "charge-5: 9.5"
    assert ran() == ["charge 5"]
    refused = await ajob_test(await create_job("one", as_task(flows.charge(5, 10.0))))
    assert refused.status == "failed"
    assert "IdempotencyConflict" in (refused.error or "")
    assert ran() == []
    ((task),) = (await tasks_of(refused)).values()
    assert (task.attempt, task.idempotency_key) == (1, "charge-5")


async def test_the_key_is_the_same_at_each_attempt(local: Path, ran: Any, tmp_path: Path) -> None:
    assert await one(flows.charge_with_failures(7, str(tmp_path / "there"))) == "charge-7"
    assert ran() == ["charge-7"] * 2


# ---------------------------------------------------------------- workers


@pytest.mark.parametrize("executor", ["inline", "process"])
async def test_workers_answer_from_the_cache(
    local: Path, state: str, ran: Any, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AAICLICK_SESSION_SECONDS", "60")
    reset_settings()
    for expected in (["rows 4", "total"], []):
        job = await flows.sums.submit(4)
        await asyncio.wait_for(worker_main_loop(max_tasks=2, executor=executor), 120)
        assert await get_job_result(job.id) == 6
        assert sorted(ran()) == expected
