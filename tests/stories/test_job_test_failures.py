"""Jobs that fail, are tried again, take too long or are cancelled, through `job_test` on three databases."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from aaiclick.orchestration import (
    Group,
    Job,
    RetryPolicy,
    ajob_test,
    cancel_job,
    create_job,
    create_task,
    get_runs_for_task,
    job,
    job_test,
)
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

HERE = "tests.orchestration.sample_flows"


def statuses(finished: Job) -> dict[str, str]:
    return {task.name: str(task.status) for task in finished.tasks}


def named(name: str, factory: Any = flows.nothing, **options: Any) -> Any:
    return factory.options(name=name, **options)


# ---------------------------------------------------------------- retries and failures


def test_a_task_is_retried_until_it_works(state: str) -> None:
    key = "until it works" + state

    @job
    def retried() -> object:
        return flows.echo(flows.flaky.options(retry=RetryPolicy(max_retries=3, delay_s=0))(key, 3))

    finished = job_test(retried)
    assert (finished.status, finished.result, finished.error) == ("completed", 4, None)
    first, second = finished.tasks
    assert (first.attempt, first.retry_count, second.attempt) == (3, 3, 0)


def test_a_task_is_given_up_when_no_retry_is_left(state: str) -> None:
    key = "given up" + state

    @job
    def hopeless() -> None:
        flows.flaky.options(retry=RetryPolicy(max_retries=2, delay_s=0))(key, 100)

    finished = job_test(hopeless)
    assert (finished.status, finished.error) == ("failed", "RuntimeError: attempt 3")
    assert flows.CALLS[key] == 3
    runs = asyncio.run(get_runs_for_task(finished.tasks[0].id))
    assert [(run.attempt, run.outcome) for run in runs] == [(0, "failed"), (1, "failed"), (2, "failed")]


def test_a_delay_passes_before_a_retry(local: object) -> None:
    key = "delayed"

    @job
    def delayed() -> None:
        flows.flaky.options(retry=RetryPolicy(max_retries=1, delay_s=0.02, jitter=False))(key, 1)

    finished = job_test(delayed)
    failed, completed = asyncio.run(get_runs_for_task(finished.tasks[0].id))
    assert completed.claimed_at is not None
    assert completed.claimed_at - failed.ended_at >= timedelta(seconds=0.02)


@pytest.mark.parametrize(
    ("policy", "calls"),
    [
        (RetryPolicy(max_retries=2, delay_s=0, retry_on=("RuntimeError",)), 3),
        (RetryPolicy(max_retries=2, delay_s=0, retry_on=("builtins.Exception",)), 3),
        (RetryPolicy(max_retries=2, delay_s=0, retry_on=("KeyError",)), 1),
        (RetryPolicy(max_retries=2, delay_s=0, no_retry_on=("RuntimeError",)), 1),
    ],
)
def test_a_policy_decides_which_errors_are_tried_again(local: object, policy: RetryPolicy, calls: int) -> None:
    key = f"{policy}"

    @job
    def picky() -> None:
        flows.flaky.options(retry=policy)(key, 100)

    assert job_test(picky).status == "failed"
    assert flows.CALLS[key] == calls


def test_what_waits_for_a_failure_fails_with_it_and_the_rest_goes_on(state: str) -> None:
    @job
    def mixed() -> None:
        bad = named("bad", flows.fail)("the cause")
        child = named("child", flows.echo)(bad)
        named("grandchild", flows.echo)([child])
        with Group("inside") as inside:
            named("member", flows.nothing)()
        bad >> inside
        inside >> named("after the group", flows.nothing)()
        named("elsewhere", flows.echo)(named("root", flows.echo)(1))

    finished = job_test(mixed)
    assert (finished.status, finished.error) == ("failed", "ValueError: the cause")
    assert statuses(finished) == {
        "bad": "failed",
        **dict.fromkeys(("child", "grandchild", "member", "after the group"), "upstream_failed"),
        **dict.fromkeys(("elsewhere", "root"), "completed"),
    }
    assert (finished.completed_tasks, finished.failed_tasks, finished.total_tasks, finished.open_tasks) == (2, 1, 7, 0)


def test_a_failure_inside_a_nested_group_fails_what_waits_outside(state: str) -> None:
    @job
    def nested() -> None:
        with Group("outer") as outer:
            named("fine", flows.nothing)()
            with Group("inner"):
                named("bad", flows.fail)()
        named("after", flows.echo)(outer)

    assert statuses(job_test(nested)) == {"fine": "completed", "bad": "failed", "after": "upstream_failed"}


def test_a_task_that_does_not_matter_may_fail(state: str) -> None:
    @job
    def optional() -> dict[str, object]:
        return {"optional": named("optional", flows.fail, critical=False)(), "needed": flows.echo(1)}

    finished = job_test(optional)
    assert (finished.status, finished.failed_tasks, finished.error) == ("completed", 1, None)
    assert finished.result == {"optional": None, "needed": 1}


def test_a_task_that_matters_fails_the_job_beside_one_that_does_not(state: str) -> None:
    @job
    def both() -> None:
        named("optional", flows.fail, critical=False)("does not matter")
        named("needed", flows.fail)("matters")

    finished = job_test(both)
    assert (finished.status, finished.error) == ("failed", "ValueError: matters")


@pytest.mark.parametrize("factory", [flows.raises, flows.raises_on_a_thread])
def test_whatever_bodies_raise_is_stored_and_everything_ends(state: str, factory: Any) -> None:
    @job
    def hostile() -> None:
        for kind in flows.RAISES:
            named(kind, factory)(kind)
        flows.stops()
        flows.interrupts_on_a_thread()
        flows.cancels_itself()
        named("fine", flows.nothing)()

    finished = job_test(hostile)
    assert finished.status == "failed"
    assert {name for name, status in statuses(finished).items() if status != "failed"} == {"fine"}
    errors = {task.name: str(task.error) for task in finished.tasks}
    assert errors["SystemExit"] == "SystemExit: 3"
    assert errors["ExceptionGroup"] == "ExceptionGroup: several (2 sub-exceptions)"
    assert errors["Unspeakable"] == "Unspeakable: (its message could not be read: ValueError)"
    assert errors["NUL"] == "ValueError: a\\x00b\\ud800c"
    assert "hunter2" not in "".join(errors.values())
    assert errors["long"].endswith("x>")
    assert len(errors["long"]) < 11_000
    for task in finished.tasks[:3]:
        (run,) = asyncio.run(get_runs_for_task(task.id))
        assert run.outcome == "failed"
        assert "sample_flows" in str(run.traceback)


def test_results_that_cannot_travel_fail_at_once_and_are_not_tried_again(state: str) -> None:
    key = "results" + state

    @job
    def impossible() -> None:
        for kind in flows.RETURNS:
            named(kind, flows.returns)(kind, key + kind)
        flows.yields.options(max_retries=3)()

    finished = job_test(impossible)
    assert set(statuses(finished).values()) == {"failed"}
    assert [flows.CALLS[key + kind] for kind in flows.RETURNS] == [1] * len(flows.RETURNS)
    errors = {task.name: str(task.error) for task in finished.tasks}
    assert all(error.startswith(("ValueNotPortable: result", "ValueTooLarge: result")) for error in errors.values())
    assert "it contains itself" in errors["itself"]


def test_an_entrypoint_that_is_gone_fails_its_task_at_once(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = asyncio.run(create_job("gone", create_task(f"{HERE}.plain", max_retries=5)))
    monkeypatch.delattr(flows, "plain")
    finished = job_test(made)
    assert finished.status == "failed"
    assert "has no plain" in str(finished.error)
    assert finished.tasks[0].attempt == 1


def test_a_function_that_changed_its_parameters_fails_its_task_at_once(state: str, monkeypatch: Any) -> None:
    made = asyncio.run(create_job("changed", create_task(f"{HERE}.plain", {"a": 1}, max_retries=5)))
    monkeypatch.setattr(flows, "plain", flows.nothing)
    finished = job_test(made)
    assert "SignatureMismatch" in str(finished.error)
    assert finished.tasks[0].attempt == 1


# ---------------------------------------------------------------- time


def test_tasks_that_are_too_slow_fail_and_are_tried_again(state: str) -> None:
    @job
    def slow() -> None:
        flows.too_slow.options(retry=RetryPolicy(max_retries=1, delay_s=0))()
        flows.hangs_on_a_thread()
        flows.echo(1)

    finished = job_test(slow)
    assert statuses(finished) == {"too_slow": "failed", "hangs_on_a_thread": "failed", "echo": "completed"}
    assert [task.attempt for task in finished.tasks] == [2, 1, 0]
    assert finished.error == "TaskTimeout: The task ran longer than its limit of 0.05 s."


# ---------------------------------------------------------------- cancelling


def from_this_thread(job_id: int) -> None:
    """In the same event loop, by another task of it."""


def from_another_thread(job_id: int) -> None:
    thread = threading.Thread(target=lambda: asyncio.run(cancel_job(job_id)))
    thread.start()
    thread.join()


def from_another_process(job_id: int) -> None:
    code = f"import asyncio; from aaiclick.orchestration import cancel_job; print(asyncio.run(cancel_job({job_id})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("cancel", [from_this_thread, from_another_thread, from_another_process])
async def test_a_running_job_is_cancelled_from_anywhere(state: str, cancel: Callable[[int], None]) -> None:
    key = f"{cancel.__name__}{state}"

    @job
    def long() -> None:
        named("body", flows.waits)(key)
        named("after", flows.echo)(named("before", flows.waits)(key))

    made = await long.submit()
    running = asyncio.create_task(ajob_test(made))
    await flows.noted(key, 2)
    if cancel is from_this_thread:
        assert await cancel_job(made.id)
    else:
        await asyncio.to_thread(cancel, made.id)
    finished = await running
    assert finished.status == "cancelled"
    assert set(statuses(finished).values()) == {"cancelled"}
    assert flows.SEEN[key] == ["began", "began", "stopped", "stopped"]


def test_a_body_may_cancel_its_own_job(state: str) -> None:
    @job("cancels itself")
    def suicidal() -> None:
        flows.cancels_its_job("cancels itself")
        flows.echo(named("waiting", flows.waits)("own job" + state))

    finished = job_test(suicidal)
    assert finished.status == "cancelled"
    assert set(statuses(finished).values()) == {"cancelled"}
