"""Whole jobs through `job_test`, on three databases: they end as they would in production."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from aaiclick.orchestration import (
    Group,
    Job,
    RetryPolicy,
    TaskResult,
    add_task_to_job,
    ajob_test,
    claim_next_task,
    create_job,
    create_task,
    get_job,
    get_job_result,
    get_task,
    get_task_result,
    job,
    job_test,
    register_worker,
)
from aaiclick.orchestration.connections import coordinated
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

HERE = "tests.orchestration.sample_flows"


def statuses(finished: Job) -> dict[str, str]:
    return {task.name: str(task.status) for task in finished.tasks}


def named(name: str, factory: Any = flows.nothing, **options: Any) -> Any:
    return factory.options(name=name, **options)


# ---------------------------------------------------------------- jobs that complete


def test_the_basic_example_completes_with_its_results(state: str) -> None:
    finished = job_test(flows.pipeline(x=3, y=4))
    assert (finished.status, finished.result) == ("completed", [7, 12])


def test_results_fan_out_and_in(state: str) -> None:
    finished = job_test(flows.fan, 30)
    assert (finished.result, finished.completed_tasks) == (sum(range(1, 31)), 31)


def test_two_thousand_results_meet_in_one_argument(state: str) -> None:
    @job
    def wide() -> int:
        with Group("parts"):
            parts = [named("part", flows.echo)(number) for number in range(2000)]
        return flows.total(parts)

    finished = job_test(wide)
    assert (finished.status, finished.result) == ("completed", sum(range(2000)))


def test_a_long_chain_is_built_and_stored_without_recursion(local: object) -> None:
    @job
    def chain() -> Any:
        last = flows.echo(0)
        for _ in range(3000):
            last = flows.echo(last)
        return last

    assert chain().total_tasks == 3001


def test_a_chain_runs_in_order(state: str) -> None:
    @job
    def chain() -> Any:
        last = flows.add(0, 1)
        for _ in range(20):
            last = flows.add(last, 1)
        return last

    assert job_test(chain).result == 21


def test_coroutines_and_plain_functions_work_together(state: str) -> None:
    @job
    def mixed() -> Any:
        later: Any = flows.gives_an_awaitable(flows.add_on_a_thread(4, 5))
        return flows.add(flows.add_on_a_thread(1, flows.add(2, 3)), later)

    assert job_test(mixed).result == 16


NAIVE = datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001 (naive is what travels here)
PLAIN: list[Any] = [
    *(None, True, False, 0, -1, 2**63, -(2**200), 0.1, -0.0, 1e16, 1e-300, "", "ü😀\n\t'\"\\", "<script>"),
    *([], {}, (), set(), frozenset({1}), [1, [2, (3, {4})]], {"a": None}, {1: "a", (2, "b"): [3], None: 4}),
    *(b"", b"\0\xff", Decimal("1.10"), Decimal("-0E-5"), UUID(int=5), date(1, 1, 1), time(23, 59, 59, 999999)),
    *(timedelta(days=-1, microseconds=1), NAIVE, datetime(2026, 10, 25, 2, 30, tzinfo=UTC)),
    datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    {"object_type": "object", "table": "t1"},
    {"object_type": "pyobj", "value": 1, "marks": [[[], "tuple"]]},
    "x" * 100_000,
]


def test_every_plain_value_travels_exactly_as_argument_and_as_result(state: str) -> None:
    @job
    def there_and_back() -> list[Any]:
        return [flows.echo_on_a_thread(flows.echo(value)) for value in PLAIN]

    results = job_test(there_and_back).result
    assert results == PLAIN
    assert [type(value) for value in results] == [type(value) for value in PLAIN]
    assert math.copysign(1, results[PLAIN.index(0.1) + 1]) == -1
    folded = results[-4]
    assert (folded.fold, folded.tzinfo.key) == (1, "Europe/Berlin")


def test_tasks_are_found_inside_lists_and_dicts(state: str) -> None:
    @job
    def deep() -> Any:
        a, b, c = flows.echo("a"), flows.echo(["b"]), flows.echo(None)
        return flows.echo({"x": [a, (b, {"y": c})], "again": a, 5: [b], "plain": {"task": 1}})

    assert job_test(deep).result == {"x": ["a", (["b"], {"y": None})], "again": "a", 5: [["b"]], "plain": {"task": 1}}


def test_a_group_as_an_argument_is_its_members_results_in_creation_order(state: str) -> None:
    @job
    def grouped() -> list[Any]:
        outer, inner, none = Group("outer"), Group("inner"), Group("none")
        inner.parent_group_id = outer.id
        for group, value in ((outer, "1"), (inner, "2"), (outer, "3"), (inner, "4")):
            with group:
                flows.echo(value)
        return [flows.echo(outer), flows.echo({"inner": [inner]}), flows.echo(none)]

    assert job_test(grouped).result == [["1", "2", "3", "4"], {"inner": [["2", "4"]]}, []]


def test_what_waits_for_a_group_waits_for_its_innermost_task(state: str) -> None:
    key = "innermost" + state

    @job
    def nested() -> None:
        with Group("outer") as outer, Group("middle"), Group("inner"):
            flows.note(key, flows.flaky.options(retry=flows.AT_ONCE)(key + "flaky", 2))
        last = flows.note(key, "last")
        outer >> last

    assert job_test(nested).status == "completed"
    assert flows.SEEN[key] == [3, "last"]


def test_every_kind_of_dependency_is_kept(state: str) -> None:
    key = "order" + state

    @job
    def ordered() -> None:
        first = flows.note(key, "task 1")
        with Group("one") as one:
            flows.note(key, "group 1")
        with Group("two") as two:
            flows.note(key, "group 2")
        last = flows.note(key, "task 2")
        first >> one >> two >> last

    job_test(ordered)
    assert flows.SEEN[key] == ["task 1", "group 1", "group 2", "task 2"]


def test_the_results_of_a_task_result(state: str) -> None:
    @job
    def tasks_only() -> TaskResult:
        with Group("g") as group:
            flows.echo(1)
        return TaskResult(tasks=[flows.echo(2), group])

    @job
    def data_and_tasks() -> TaskResult:
        return TaskResult(data=("done", flows.echo(1)), tasks=[flows.echo(2)])

    assert job_test(tasks_only).result == [2, [1]]
    assert job_test(data_and_tasks).result == ("done", 1)
    assert job_test(flows.runs, "hands_on", data={"from": "a task"}).result == {"from": "a task"}


def test_a_job_without_tasks_completes(state: str) -> None:
    assert job_test(flows.empty).status == "completed"


def test_the_same_task_twice_among_the_arguments(state: str) -> None:
    @job
    def twice() -> Any:
        one = flows.add(20, 1)
        return flows.add(one, one)

    assert job_test(twice).result == 42


def test_arguments_bind_as_in_python(state: str) -> None:
    @job
    def calls() -> list[Any]:
        return [
            flows.with_defaults(1),
            flows.with_defaults(1, c=flows.add(4, 5)),
            flows.with_the_rest(1, größe=2, **{"not an identifier": 3}),
            flows.takes_self(1, 2),
            flows.größe(wert=5),
            flows.Shop.price(4),
            flows.decorated_inside(6),
        ]

    expected = [(1, 2, 3), (1, 2, 9), {"a": 1, "größe": 2, "not an identifier": 3}, 3, 5, 8, 6]
    assert job_test(calls).result == expected


# ---------------------------------------------------------------- nobody else takes a task of the job


@contextmanager
def another_claimer(begin: threading.Event) -> Iterator[list[str]]:
    """A live worker that claims whatever it can get from when `begin` is set until the block ends."""
    claimed: list[str] = []
    end = threading.Event()

    async def work() -> None:
        worker = await register_worker()
        while not end.is_set():
            claim = await claim_next_task(worker.id)
            if claim is not None:
                claimed.append(claim.name)
            await asyncio.sleep(0.001)

    def wait_and_work() -> None:
        begin.wait(60)
        asyncio.run(work())

    thread = threading.Thread(target=wait_and_work)
    thread.start()
    try:
        yield claimed
    finally:
        begin.set()
        end.set()
        thread.join()


@job
def crowded(key: str) -> Any:
    first = flows.note(key, "first")
    parts = [flows.echo_on_a_thread([first, number]) for number in range(20)]
    retried = [flows.flaky.options(retry=RetryPolicy(2, 0.001))(f"{key}{number}", 2) for number in range(3)]
    return flows.echo([*parts, *retried])


@pytest.mark.parametrize("way", ["a job", "a function"])
def test_no_live_worker_gets_a_task_of_a_job_under_job_test(state: str, way: str) -> None:
    key = f"claimer{way}{state}"
    begin = threading.Event()
    made = crowded(key) if way == "a job" else None
    flows.SEEN[key] = Noticing(begin)
    with another_claimer(begin) as claimed:
        finished = job_test(made) if made is not None else job_test(crowded, key=key)
        other = asyncio.run(create_job("free for all", create_task(flows.plain, name="free")))
        while not claimed:
            pass
    assert finished.status == "completed"
    assert claimed == ["free"]
    left = asyncio.run(get_job(other.id))
    assert left is not None
    assert left.status == "running"


class Noticing(list[Any]):
    """A list that tells when something is put into it: the first body runs."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def append(self, item: Any) -> None:
        self.event.set()
        super().append(item)


async def test_what_is_added_while_the_job_is_reserved_belongs_to_its_reservation(state: str) -> None:
    """Else it is left to the live workers, and `job_test` waits for ever where there are none."""
    made = await flows.single.submit(1)
    worker = await register_worker()

    async def reserve() -> None:
        async with coordinated() as coordinator:
            await coordinator.reserve(made.id, worker.id)

    added, _ = await asyncio.gather(add_task_to_job(made.id, f"{HERE}.nothing"), reserve())
    stored = await get_task(added.id)
    assert stored is not None
    assert stored.reserved_for == worker.id


async def test_what_was_claimed_before_the_job_was_reserved_comes_back_to_its_reservation(state: str) -> None:
    """A live worker took a task, the job is reserved, the worker gives the task back: to whom it is reserved."""
    made = await flows.single.submit(1)
    other, owner = await register_worker(), await register_worker()
    async with coordinated() as coordinator:
        claims = await coordinator.claim(other.id, limit=1)
        await coordinator.reserve(made.id, owner.id)
        await coordinator.release(other.id, claims)
        assert await coordinator.claim(other.id, limit=1) == []
        assert len(await coordinator.claim(owner.id, limit=1, reserved_for=owner.id)) == 1


def test_two_may_test_the_same_job_at_once(state: str) -> None:
    made = flows.fan(20)
    finished: list[Job] = []
    threads = [threading.Thread(target=lambda: finished.append(job_test(made))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(one.status, one.completed_tasks) for one in finished] == [("completed", 21)] * 2


def test_a_result_can_be_read_task_by_task(state: str) -> None:
    finished = job_test(flows.fan, 2)
    assert [asyncio.run(get_task_result(task.id)) for task in finished.tasks] == [1, 2, 3]


async def test_a_body_knows_its_own_run(local: object) -> None:
    finished = await ajob_test(flows.runs, "tells_its_run")
    (task,) = finished.tasks
    assert await get_job_result(finished) == [task.id, finished.id, f"{task.id}-0", False]


async def test_a_job_ends_when_its_time_is_up(state: str) -> None:
    finished = await ajob_test(flows.runs.options(timeout_s=0.2), "sleeps", seconds=30)
    assert (finished.status, finished.error) == (
        "failed",
        "JobTimeout: The job ran longer than its limit of 0.2 s.",
    )
