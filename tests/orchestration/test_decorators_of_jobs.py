"""`@job`: what a workflow function becomes, and what is refused when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest

from aaiclick.errors import (
    Conflict,
    CrossJobDependency,
    GraphError,
    InputError,
    JobEnded,
    RunningLoop,
    SignatureMismatch,
    ValueNotPortable,
)
from aaiclick.orchestration import (
    Group,
    Job,
    JobFactory,
    Task,
    TaskResult,
    add_task_to_job,
    ajob_test,
    count_jobs,
    create_job,
    get_events_for_job,
    get_job_result,
    get_tasks_for_job,
    job,
    job_test,
    list_jobs,
    wait_for_job,
)
from aaiclick.orchestration.rules.values.encoding import decode_kwargs
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

HERE = "tests.orchestration.sample_flows"


def given(made: Task) -> dict[str, object]:
    """The arguments as the body will get them, references apart."""
    return decode_kwargs(made.kwargs_json)


def upstream(made: Task) -> list[int]:
    return [edge.previous.id for edge in made.incoming]


# ---------------------------------------------------------------- @job


def test_a_job_is_marked_in_three_spellings() -> None:
    def work() -> None: ...

    assert [job(work).name, job("a")(work).name, job(name="b")(work).name, job()(work).name] == [
        "work",
        "a",
        "b",
        "work",
    ]
    assert isinstance(job(work), JobFactory)
    assert job(work).__name__ == "work"  # type: ignore[attr-defined]


def test_calling_a_job_commits_it(state: str) -> None:
    made = flows.pipeline(x=3, y=4)
    assert isinstance(made, Job)
    assert (made.name, made.status, made.total_tasks) == ("pipeline", "pending", 2)
    stored = asyncio.run(get_tasks_for_job(made.id))
    assert [one.name for one in stored] == ["add", "multiply"]
    assert [one.kwargs for one in stored] == [one.kwargs for one in made.tasks]


def test_tasks_that_are_not_returned_belong_to_the_job_too(local: object) -> None:
    @job
    def two() -> None:
        with Group("g"):
            flows.add(1, 2)
        flows.add(3, 4)

    made = two()
    assert made.total_tasks == 2
    assert [group.name for group in made.groups] == ["g"]


def test_tasks_made_outside_a_job_come_with_whoever_waits_for_them(local: object) -> None:
    before = flows.add(1, 2)

    @job
    def later() -> object:
        return flows.echo(before)

    assert later().total_tasks == 2
    with pytest.raises(CrossJobDependency, match="add"):
        later()


def test_a_task_made_inside_one_job_cannot_be_used_in_another(local: object) -> None:
    first = flows.single(1)

    @job
    def second() -> object:
        return flows.echo(first.tasks[0])

    with pytest.raises(CrossJobDependency, match=str(first.id)):
        second()


def test_a_workflow_may_be_a_coroutine_function(local: object) -> None:
    assert flows.built_in_a_coroutine(5).total_tasks == 1


def test_a_workflow_that_raises_raises_and_stores_nothing(state: str) -> None:
    with pytest.raises(LookupError, match="the workflow itself"):
        flows.breaks()
    assert asyncio.run(count_jobs()) == 0
    assert flows.single(1).total_tasks == 1


def test_a_workflow_takes_arguments_as_its_function_does(local: object) -> None:
    assert flows.pipeline(3, y=4).total_tasks == 2
    with pytest.raises(SignatureMismatch, match="missing: 'y'"):
        flows.pipeline(3)


def test_a_workflow_that_returns_what_cannot_travel_is_refused(local: object) -> None:
    @job
    def bad() -> object:
        flows.add(1, 2)
        return {"x": [object()]}

    with pytest.raises(ValueNotPortable, match=r"result\.x\[0\]"):
        bad()
    assert asyncio.run(count_jobs()) == 0


@pytest.mark.parametrize("tasks", [[5], "tasks", None, [[]]])
def test_a_task_result_of_anything_but_tasks_is_refused(local: object, tasks: list[Task | Group]) -> None:
    @job
    def bad() -> TaskResult:
        flows.add(1, 2)
        return TaskResult(tasks=tasks)

    with pytest.raises(InputError, match=r"TaskResult\.tasks"):
        bad()


def test_a_job_called_inside_a_job_says_what_to_do_instead(local: object) -> None:
    with pytest.raises(GraphError, match=r"call single\.function\("):
        flows.nests()
    assert flows.takes_part_of_another().total_tasks == 1


async def test_inside_a_running_loop_a_call_says_what_to_await_and_that_works(state: str) -> None:
    @job("a name with blanks")
    def workflow(x: int) -> object:
        return flows.echo(x)

    with pytest.raises(RunningLoop, match=r"Write instead: \(await workflow\(…\)\)\.id"):
        workflow(x=3).id  # noqa: B018 (asking is what is refused)
    assert await count_jobs() == 0
    made = await workflow(x=3)
    assert (await list_jobs())[0].id == made.id
    again = await asyncio.create_task(awaited(workflow(x=4)))
    assert again.status == "pending"
    assert await count_jobs() == 2


async def awaited(call: Awaitable[Job]) -> Job:
    return await call


async def test_a_call_inside_a_running_loop_shows_what_it_is(local: object) -> None:
    call = flows.single(1)
    assert repr(call) == "<single(…), to be awaited>"
    assert (await call).total_tasks == 1


# ---------------------------------------------------------------- workflows that make no tasks


@job
def each_of(files: list[str]) -> object:
    return [flows.echo(file) for file in files]


@job
def nothing_but_a_group() -> dict[str, int]:
    with Group("empty"):
        pass
    return {"found": 0}


def test_a_workflow_that_makes_no_tasks_completes_with_its_result(state: str) -> None:
    made = each_of(files=[])
    assert (made.status, made.total_tasks, made.result) == ("completed", 0, [])
    assert made.started_at is not None
    assert made.completed_at is not None
    assert [event.move for event in asyncio.run(get_events_for_job(made.id))] == ["create", "start", "complete"]
    assert asyncio.run(wait_for_job(made.id, timeout_s=1)).status == "completed"
    with pytest.raises(JobEnded):
        asyncio.run(add_task_to_job(made.id, flows.nothing))


def test_a_workflow_that_makes_no_tasks_completes_under_job_test(state: str) -> None:
    for finished in (job_test(each_of, files=[]), job_test(each_of(files=[])), job_test(nothing_but_a_group)):
        assert finished.status == "completed"
    assert finished.result == {"found": 0}


def test_a_workflow_without_tasks_and_with_a_key_is_one_job(state: str) -> None:
    first, second = (each_of.options(key="k")(files=[]) for _ in range(2))
    assert (first.id, first.status) == (second.id, second.status)


async def test_a_job_made_without_tasks_waits_for_some(state: str) -> None:
    made = await create_job("waits", tasks=[])
    assert made.status == "pending"
    await add_task_to_job(made.id, flows.nothing)
    assert (await ajob_test(made)).status == "completed"


# ---------------------------------------------------------------- options of a run


def test_options_of_a_run_reach_the_job(state: str) -> None:
    made = flows.single.options(key="today", priority=5, preservation_mode="FULL", timeout_s=60)(x=1)
    assert (made.key, made.priority, made.preservation_mode, made.timeout_s) == ("today", 5, "full", 60)
    assert made.tasks[0].priority == 5


def test_the_same_key_and_arguments_are_the_same_job(state: str) -> None:
    first = flows.pipeline.options(key="k")(x=3, y=4)
    assert flows.pipeline.options(key="k")(y=4, x=3).id == first.id
    assert flows.pipeline.options(key="k")(3, 4).id == first.id
    with pytest.raises(Conflict, match="Use another key"):
        flows.pipeline.options(key="k")(x=3, y=5)
    with pytest.raises(Conflict, match="Use another key"):
        flows.single.options(key="k", name="pipeline")(x=3)
    assert asyncio.run(count_jobs()) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"priority": "high"},
        {"priority": 2**40},
        {"priority": True},
        {"timeout_s": -1},
        {"timeout_s": "1h"},
        {"timeout_s": float("nan")},
        {"fail_fast": 1},
        {"preservation_mode": "SOME"},
        {"key": ""},
        {"key": "a\0"},
        {"name": "a\nb"},
    ],
)
def test_a_wrong_option_of_a_run_is_refused_the_same_everywhere(state: str, options: Any) -> None:
    with pytest.raises(InputError):
        flows.single.options(**options)(x=1)
    assert asyncio.run(count_jobs()) == 0


async def test_two_workflows_built_at_once_do_not_mix_their_tasks(local: object) -> None:
    @job
    async def slow(key: int) -> list[object]:
        made = []
        for _ in range(3):
            made.append(flows.echo(key))
            await asyncio.sleep(0)
        return made

    jobs = await asyncio.gather(*(slow.submit(key) for key in range(5)))
    assert [one.total_tasks for one in jobs] == [3] * 5
    assert [{json.dumps(made.kwargs) for made in one.tasks} for one in jobs] == [
        {json.dumps({"value": {"object_type": "pyobj", "value": key}})} for key in range(5)
    ]


async def test_the_result_of_a_job_that_has_not_run_cannot_be_read(local: object) -> None:
    made = await flows.single.submit(1)
    with pytest.raises(Conflict, match="it is pending"):
        await get_job_result(made)
