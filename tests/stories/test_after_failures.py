"""Workflows that go on after partial failure, run as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration import Failed, Group, as_task, create_job, create_task, job, job_test, task
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
