"""A run goes through its stages, whoever calls its body."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from aaiclick.orchestration import as_task
from aaiclick.orchestration.execution.runs.failures import describe
from aaiclick.orchestration.execution.runs.pipeline import PipelineRun, Raised, Stage, Stopped, prepare, run_through
from aaiclick.orchestration.gathering import staging_around
from aaiclick.orchestration.models import Claim, Report
from tests.orchestration import growing_flows
from tests.support import bodies
from tests.support.bodies import claim_of, failure_in, result_in
from tests.support.front_door import local

__all__ = ["local"]

T = TypeVar("T")


class Notes:
    """A caller that notes what is asked of it."""

    def __init__(self, body: Callable[[PipelineRun], object] = lambda run: run.function(**run.kwargs)) -> None:
        self.body = body
        self.seen: list[str] = []
        self.run: PipelineRun | None = None

    def __enter__(self) -> None:
        self.seen.append("enter")

    def __exit__(self, *error: object) -> None:
        self.seen.append("exit")

    async def call(self, run: PipelineRun) -> object:
        assert staging_around() is not None
        self.run = run
        self.seen.append(run.stage.value)
        return self.body(run)

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        self.seen.append(getattr(work, "__name__", ""))
        return await work

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        self.seen.append("finish")
        await work

    def is_own(self, error: BaseException) -> bool:
        return isinstance(error, asyncio.CancelledError)

    def met(self, claim: Claim, error: BaseException) -> None:
        self.seen.append(f"met {describe(error)}")


def raising(error: BaseException) -> Notes:
    def body(run: PipelineRun) -> object:
        raise error

    return Notes(body)


async def through(caller: Notes, body: str | Callable[..., Any] = bodies.nothing, **kwargs: Any) -> Report:
    return await run_through(claim_of(body, **kwargs), caller)


async def test_a_run_that_needs_no_tables_waits_for_nothing() -> None:
    caller = Notes()
    assert result_in(await through(caller, bodies.echo, value=[1])) == [1]
    assert caller.seen == ["enter", "call", "exit"]
    assert caller.run is not None
    assert caller.run.stage is Stage.CLOSE
    assert staging_around() is None


async def test_what_a_run_opens_is_given_back_while_the_caller_is_there(local: Path) -> None:
    claim = replace(claim_of(bodies.echo), kwargs_json='{"value": {"object_type": "object", "table": "t1_1_1"}}')
    caller = Notes()
    failure = failure_in(await run_through(claim, caller))
    assert "ObjectNotFound" in failure.error
    assert not failure.permanent
    assert caller.seen == ["enter", "open_arguments", f"met {failure.error}", "finish", "exit"]


async def test_an_error_of_whoever_meets_the_bodys_is_its_own_and_what_was_opened_is_given_back(local: Path) -> None:
    class Quits(Notes):
        def met(self, claim: Claim, error: BaseException) -> None:
            raise LookupError("quit")

    claim = replace(claim_of(bodies.echo), kwargs_json='{"value": {"object_type": "object", "table": "t1_1_1"}}')
    caller = Quits()
    with pytest.raises(LookupError):
        await run_through(claim, caller)
    assert caller.seen == ["enter", "open_arguments", "finish", "exit"]


async def test_what_cannot_be_prepared_would_fail_again() -> None:
    caller = Notes()
    assert failure_in(await through(caller, f"{bodies.__name__}.no_such")).permanent
    assert caller.seen == ["enter", "exit"]


async def test_a_run_that_is_stopped_while_it_is_prepared_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"from {Stopped.__module__} import Stopped\ndef __getattr__(name): raise Stopped('now')\n"
    (tmp_path / "stopped_meanwhile.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    failure = failure_in(await through(Notes(), "stopped_meanwhile.f"))
    assert failure.error == "Stopped: now"
    assert not failure.permanent


@pytest.mark.parametrize("wrapped", [False, True])
async def test_what_a_body_raises_is_met_and_becomes_a_failure(wrapped: bool) -> None:
    error = ValueError("oh")
    caller = raising(Raised(error) if wrapped else error)
    failure = failure_in(await through(caller))
    assert (failure.error, failure.permanent) == ("ValueError: oh", False)
    assert caller.seen == ["enter", "call", "met ValueError: oh", "exit"]


async def test_an_error_of_the_callers_own_goes_on_unless_it_was_wrapped() -> None:
    with pytest.raises(asyncio.CancelledError):
        await through(raising(asyncio.CancelledError()))
    caller = raising(Raised(asyncio.CancelledError()))
    assert failure_in(await through(caller)).error == "CancelledError"


async def test_what_fails_when_the_caller_leaves_is_a_failure() -> None:
    class Broken(Notes):
        def __exit__(self, *error: object) -> None:
            raise SystemExit("at the end")

    assert failure_in(await through(Broken())).error == "SystemExit: at the end"


async def test_a_body_that_raises_leaves_nothing_that_it_made() -> None:
    made: list[Any] = []

    def body(run: PipelineRun) -> object:
        made.append(growing_flows.square(x=1))
        raise ValueError("after all")

    failure_in(await through(Notes(body)))
    assert staging_around() is None
    assert as_task(made[0]).applied, "it cannot be added to anything later"


def test_the_function_and_its_arguments() -> None:
    function, kwargs = prepare(claim_of(bodies.echo, value={"a": (1,)}), {}, False)
    assert function is bodies.echo
    assert kwargs == {"value": {"a": (1,)}}
