"""One run: from a claim to its report, whatever the body does."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import aaiclick
from aaiclick.config import reset_settings
from aaiclick.orchestration import Group, Task, as_task
from aaiclick.orchestration.execution.runs import runner
from aaiclick.orchestration.execution.runs.runner import run_claim
from aaiclick.orchestration.models import Claim, Done, Failure, Report
from aaiclick.orchestration.rules.values.encoding import decode_value, encode_value
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local

__all__ = ["local"]

OURS = str(Path(aaiclick.__file__).parent)

CALLS_MAX = 65
"""The most calls of our own functions for a run whose body does nothing."""

WHERE = contextvars.ContextVar("where", default="nowhere")


def claim_of(task: Any, inputs: dict[int, object] | None = None, members: dict[int, list[int]] | None = None) -> Claim:
    """The claim that a worker would get for the task; `inputs` are the results of those it waits for."""
    results = {key: encode_value(value, bytes_max=10**6) for key, value in (inputs or {}).items()}
    return Claim(
        task_id=task.id,
        epoch=7,
        worker_id=1,
        job_id=1,
        group_id=None,
        name=task.name,
        entrypoint=task.entrypoint,
        kwargs_json=task.kwargs_json,
        attempt=0,
        timeout_s=task.timeout_s,
        inputs=dict(results),
        members=members or {},
    )


def result_of(report: Report) -> object:
    assert isinstance(report, Done), report
    assert report.epoch == 7
    return decode_value(report.result_json)


def failure_in(report: Report) -> Failure:
    assert isinstance(report, Failure), report
    assert report.epoch == 7
    return report


# ---------------------------------------------------------------- bodies that work


@pytest.mark.parametrize(
    ("task", "result"),
    [
        (lambda: flows.add(1, 2), 3),
        (lambda: flows.add_on_a_thread(1, 2), 3),
        (lambda: flows.nothing(), None),
        (lambda: flows.with_defaults(1), (1, 2, 3)),
        (lambda: flows.with_defaults(1, c=5), (1, 2, 5)),
        (lambda: flows.with_the_rest(1, b=2), {"a": 1, "b": 2}),
        (lambda: flows.takes_self(1, 2), 3),
        (lambda: flows.größe(5), 5),
        (lambda: flows.Shop.price(5), 10),
        (lambda: flows.decorated_inside(5), 5),
        (lambda: flows.gives_an_awaitable(5), 6),
        (lambda: flows.hands_on({"x": 1}), {"x": 1}),
        (lambda: Task("tests.orchestration.sample_flows.plain"), 1),
    ],
)
@pytest.mark.parametrize("threads", [True, False])
async def test_a_body_gives_its_result(task: Callable[[], Task], result: object, threads: bool) -> None:
    assert result_of(await run_claim(claim_of(task()), threads=threads)) == result


async def test_results_of_tasks_take_their_places_among_the_arguments() -> None:
    a, b, group = as_task(flows.add(1, 2)), as_task(flows.add(3, 4)), Group("g")
    task = flows.echo({"a": [a, b, a], "group": group, "plain": 1})
    claim = claim_of(task, {a.id: 3, b.id: ("seven",), 9: None}, {group.id: [b.id, 9]})
    assert result_of(await run_claim(claim)) == {"a": [3, ("seven",), 3], "group": [("seven",), None], "plain": 1}


async def test_a_plain_function_runs_on_a_thread_of_its_own_with_its_surroundings() -> None:
    seen: list[object] = []

    def body() -> None:
        seen.append((threading.current_thread() is threading.main_thread(), WHERE.get()))

    WHERE.set("here")
    await runner._on_thread(body, {})
    assert seen == [(False, "here")]


async def test_more_bodies_than_processors_run_at_once() -> None:
    count = 40
    together = threading.Barrier(count, timeout=60)
    await asyncio.gather(*(runner._on_thread(together.wait, {}) for _ in range(count)))


# ---------------------------------------------------------------- bodies that raise


@pytest.mark.parametrize("kind", flows.RAISES)
@pytest.mark.parametrize("factory", [flows.raises, flows.raises_on_a_thread])
async def test_whatever_a_body_raises_becomes_a_failure(factory: Callable[[str], Task], kind: str) -> None:
    failure = failure_in(await run_claim(claim_of(factory(kind))))
    error = type(flows.RAISES[kind]())
    assert failure.error_types[0] == f"{error.__module__}.{error.__qualname__}"
    assert not failure.permanent


async def test_a_thread_may_raise_what_a_coroutine_cannot() -> None:
    assert failure_in(await run_claim(claim_of(flows.stops()))).error == "StopIteration: enough"
    assert failure_in(await run_claim(claim_of(flows.interrupts_on_a_thread()))).error == "KeyboardInterrupt"


async def test_whoever_watches_meets_the_exception_first() -> None:
    met: list[BaseException] = []
    for task in (flows.fail("oh"), flows.raises_on_a_thread("SystemExit")):
        await run_claim(claim_of(task), watcher=lambda claim, error: met.append(error))
    assert [type(error) for error in met] == [ValueError, SystemExit]
    assert met[0].__traceback__ is not None


async def test_cancelling_the_run_cancels_the_body_and_is_no_failure() -> None:
    run = asyncio.create_task(run_claim(claim_of(flows.waits("cancelled run"))))
    await flows.noted("cancelled run")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert flows.SEEN["cancelled run"] == ["began", "stopped"]


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("factory", [flows.too_slow, flows.hangs_on_a_thread])
async def test_a_body_that_is_too_slow_fails(factory: Callable[[], Task]) -> None:
    failure = failure_in(await run_claim(claim_of(factory())))
    assert failure.error == "TaskTimeout: The task ran longer than its limit of 0.05 s."
    assert "builtins.TimeoutError" in failure.error_types
    assert not failure.permanent


async def test_a_timeout_of_the_bodys_own_is_its_own() -> None:
    report = await run_claim(claim_of(flows.raises.options(timeout_s=60)("TimeoutError")))
    assert failure_in(report).error == "TimeoutError: its own"


async def test_the_default_timeout_comes_from_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKER_TASK_TIMEOUT", "1")
    reset_settings()
    try:
        report = await run_claim(claim_of(flows.waits("default timeout")))
        assert failure_in(report).error == "TaskTimeout: The task ran longer than its limit of 1.0 s."
    finally:
        monkeypatch.undo()
        reset_settings()


# ---------------------------------------------------------------- what no retry can mend


@pytest.mark.parametrize("kind", flows.RETURNS)
async def test_a_result_that_cannot_travel_fails_for_good(kind: str) -> None:
    failure = failure_in(await run_claim(claim_of(flows.returns(kind, "runner"))))
    assert failure.permanent
    assert failure.error.startswith(("ValueNotPortable: result", "ValueTooLarge: result"))


@pytest.mark.parametrize("factory", [flows.yields, flows.yields_on_a_thread])
async def test_a_generator_is_no_result(factory: Callable[[], Task]) -> None:
    failure = failure_in(await run_claim(claim_of(factory())))
    assert failure.permanent
    assert "Pass a list of its items" in failure.error


@pytest.mark.parametrize(
    ("entrypoint", "said"),
    [
        ("no_such_module_at_all.f", "there is no module"),
        ("tests.orchestration.sample_flows.no_such", "has no no_such"),
        ("os.system", "built into Python"),
        ("__main__.f", "a different module in every process"),
        ("tests.orchestration.sample_flows.add", "missing: 'a', 'b'"),
    ],
)
async def test_an_entrypoint_that_cannot_be_called_fails_for_good(entrypoint: str, said: str) -> None:
    failure = failure_in(await run_claim(claim_of(Task(entrypoint))))
    assert failure.permanent
    assert said in failure.error


async def test_arguments_that_cannot_be_read_fail_for_good() -> None:
    claim = claim_of(flows.echo(1))
    claim.kwargs_json = (
        '{"value": {"object_type": "pyobj", "value": "x", "marks": [[[], "datetime", {"zone": "No/Where"}]]}}'
    )
    assert failure_in(await run_claim(claim)).permanent
    claim.kwargs_json = "not json"
    assert failure_in(await run_claim(claim)).permanent


async def test_an_object_that_is_gone_fails_the_run(local: Path) -> None:
    task = Task("tests.orchestration.sample_flows.echo", {"value": {"object_type": "object", "table": "t1"}})
    assert "ObjectNotFound: There is no Object called t1" in failure_in(await run_claim(claim_of(task))).error


@pytest.mark.parametrize(
    "text", ["import sys; sys.exit(3)", "raise ValueError('broken')", "raise BaseException('odd')"]
)
async def test_a_module_that_breaks_when_it_is_imported_fails_only_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "breaks_at_import.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    failure = failure_in(await run_claim(claim_of(Task("breaks_at_import.f"))))
    assert failure.permanent
    assert "breaks_at_import" not in sys.modules


async def test_a_run_without_objects_calls_few_functions() -> None:
    """Each run pays for them. Whoever adds a layer sees it here, and decides."""
    claim = claim_of(Task("benchmarks.bodies.nothing", {"x": 1}))
    await run_claim(claim)
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            called.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        await run_claim(claim)
    finally:
        sys.setprofile(None)
    assert len(called) <= CALLS_MAX, called
