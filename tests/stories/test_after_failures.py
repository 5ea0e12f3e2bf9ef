"""Workflows that go on after partial failure, run as people write them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from aaiclick.data import Object, View
from aaiclick.errors import InputError
from aaiclick.orchestration import (
    Failed,
    Group,
    as_task,
    create_job,
    create_task,
    get_runs_for_task,
    job,
    job_test,
    task,
)
from tests.orchestration import sample_flows as flows

FAIL = "tests.orchestration.sample_flows.fail"


@task(when="all_done")
def look(values: Any) -> list[str]:
    return [describe(value) for value in values]


@task(when="one_failed")
def alarm(value: Any) -> str:
    return describe(value)


def describe(value: Any) -> str:
    return f"{value.type}|{value.message}" if isinstance(value, Failed) else repr(value)


def test_what_failed_arrives_in_its_place_and_what_never_ran_too() -> None:
    @job
    def flow() -> Any:
        bad = flows.fail.options(critical=False)("no luck")
        behind = flows.echo.options(critical=False)(bad)
        with Group("mixed") as group:
            flows.echo(1)
            flows.fail.options(critical=False)("in a group")
        return [look([bad, behind, flows.echo(7)]), look.options(name="of group")(group)]

    finished = job_test(flow)
    assert finished.status == "completed"
    first, second = finished.result
    assert first[0].endswith("|no luck")
    assert first[1].startswith("UpstreamFailed|The task never ran: task 'fail'")
    assert first[2] == "7"
    assert second[0] == "1"
    assert second[1].endswith("|in a group")


class Model(BaseModel):
    number: int


@task(when="all_done")
def of_int(value: int) -> Any:
    return seen(value)


@task(when="all_done")
def of_ints(value: list[int]) -> Any:
    return seen(value)


@task(when="all_done")
def of_model(value: Model) -> Any:
    return seen(value)


@task(when="all_done")
def of_object(value: Object) -> Any:
    return seen(value)


@task(when="all_done")
def of_view(value: View | None) -> Any:
    return seen(value)


@task(when="all_done")
def of_objects(value: list[Object]) -> Any:
    return seen(value)


@task(when="all_done")
def of_either(value: int | Failed) -> Any:
    return seen(value)


@task(when="all_done")
def of_anything(value):
    return seen(value)


def seen(value: Any) -> Any:
    """What arrived, with the texts of failures, and the names of the types of what is no plain value."""
    if isinstance(value, list | tuple):
        return [seen(each) for each in value]
    if isinstance(value, dict):
        return {name: seen(each) for name, each in value.items()}
    return str(value) if isinstance(value, Failed) else value if isinstance(value, int) else type(value).__name__


TYPED = (of_int, of_ints, of_model, of_object, of_view, of_objects, of_either, of_anything)


@task(when="all_done")
def hand_on(values: Any) -> Any:
    return {"all": values}


@task(when="all_done")
def plus_one(value: int) -> int:
    return value + 1


@task(critical=False)
def lost() -> int:
    raise ConnectionError("gone")


@pytest.mark.parametrize("kind", TYPED, ids=lambda kind: kind.name)
def test_a_failure_arrives_as_it_is_whatever_the_annotation_says(kind: Any) -> None:
    """Also in a list or a group that would become an Object: nothing is made of what holds a failure."""

    @job
    def flow() -> Any:
        with Group("g") as group:
            flows.echo(1)
            lost()
        return [kind(lost()), kind([flows.echo(1), lost()]), kind({"a": (lost(), 2)}), kind(group)]

    finished = job_test(flow)
    gone = "ConnectionError: gone"
    assert (finished.status, finished.error) == ("completed", None)
    assert finished.result == [gone, [1, gone], {"a": [gone, 2]}, [1, gone]]


def test_without_a_failure_an_object_is_made_as_ever() -> None:
    @job
    def flow() -> Any:
        ones: Any = [flows.echo(1), flows.echo(1)]
        return [of_object(ones), of_view(ones), of_objects(ones)]

    assert job_test(flow).result == ["Object", "Object", [1, 1]]


def test_a_failure_may_be_handed_on() -> None:
    @job
    def flow() -> Any:
        return look(hand_on([lost(), 1]))

    @job
    def returned() -> Any:
        return hand_on([lost(), 1])

    assert job_test(flow).result == ["'all'"]
    first, second = job_test(returned).result["all"]
    assert (first.type, first.message, second) == ("ConnectionError", "gone", 1)


def test_a_body_that_fails_with_what_failed_before_says_so() -> None:
    @job
    def flow() -> Any:
        return plus_one(lost())

    finished = job_test(flow)
    assert str(finished.error).startswith("TypeError: unsupported operand")
    (run,) = asyncio.run(get_runs_for_task(finished.tasks[1].id))
    told = f"Its arguments contain the failure of task {finished.tasks[0].id}: ConnectionError: gone\n"
    assert str(run.traceback).endswith(told)


def test_what_is_not_needed_gives_none_and_fails_nothing() -> None:
    @job
    def flow() -> Any:
        return {"alarm": alarm(flows.echo(1)), "after": look([alarm(flows.echo(2))])}

    finished = job_test(flow)
    assert (finished.status, finished.result) == ("completed", {"alarm": None, "after": ["None"]})
    assert (finished.skipped_tasks, finished.completed_tasks, finished.total_tasks) == (2, 3, 5)


def test_a_failure_that_is_met_does_not_mend_a_job_that_needs_the_task() -> None:
    @job
    def flow() -> Any:
        return alarm(flows.fail("critical"))

    finished = job_test(flow)
    assert finished.status == "failed"
    assert [str(made.status) for made in finished.tasks] == ["failed", "completed"]


def test_options_and_factories_take_the_rule_and_refuse_what_is_none() -> None:
    assert as_task(flows.echo.options(when="always")(1)).when == "always"
    assert create_task(FAIL, when="one_completed").when == "one_completed"
    assert Group("g", when="none_failed").when == "none_failed"
    for make in (
        lambda: flows.echo.options(when="maybe"),  # type: ignore[arg-type]
        lambda: create_task(FAIL, when="maybe"),  # type: ignore[arg-type]
        lambda: Group("g", when="maybe"),  # type: ignore[arg-type]
        lambda: task(when="maybe")(flows.plain),  # type: ignore[call-overload]
    ):
        with pytest.raises(InputError, match="when: 'maybe' is not accepted"):
            make()


async def test_a_rule_is_stored_with_the_task() -> None:
    made = await create_job("rules", tasks=[create_task(FAIL, when="always", name="x")])
    assert made.total_tasks == 1
