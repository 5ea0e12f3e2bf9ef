"""The life of one run, from a claim to its report: a value that goes through open, prepare, call, lower and complete.

It is told here once, wherever the body runs. How a body is called and how anything is waited for differs, and is a
Caller's to know: `runner` has one for the worker's own process, `executors/child_process/main_thread`
one for a child's.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Protocol, TypeVar

from aaiclick.data.context import provided_by
from aaiclick.orchestration.execution.runs.failures import failure_of
from aaiclick.orchestration.execution.runs.run_data import (
    PLAIN,
    Opened,
    RunData,
    holds_data,
    is_heavy,
    key_of,
    refers_to_objects,
    wanting_objects,
)
from aaiclick.orchestration.execution.runs.run_secrets import hands_on_secrets, mask_values, may_name_secrets, reveal
from aaiclick.orchestration.execution.runs.run_staging import completed, new_staging
from aaiclick.orchestration.gathering import Staging, staged_in
from aaiclick.orchestration.models import Claim, Failure, Report
from aaiclick.orchestration.results.task_results import Results
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside, has_outside_arguments
from aaiclick.orchestration.rules.values.encoding import decode_kwargs
from aaiclick.orchestration.submitting.entrypoints import check_call, resolve, unwrap

T = TypeVar("T")


class Stage(Enum):
    """Where a run is."""

    OPEN = "open"
    """The Objects that its arguments refer to are opened."""
    PREPARE = "prepare"
    """The function is found, its arguments are decoded. What fails here would fail again."""
    CALL = "call"
    """The body runs."""
    LOWER = "lower"
    """Tables are made of what it returned of queries and frames."""
    COMPLETE = "complete"
    """The result and what was made become the report."""
    CLOSE = "close"
    """There is a report; what the run opened is given back."""


class PipelineRun:
    """One run on its way through the stages."""

    __slots__ = ("claim", "data", "function", "kwargs", "opened", "stage", "value")

    function: Callable[..., Any]
    kwargs: dict[str, Any]
    value: Any
    """What the body returned."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.data = RunData(claim)
        self.opened: Opened = {}
        self.stage = Stage.OPEN


class Stopped(SystemExit):
    """The worker wants this run to end: raised in the body, so that its `finally` blocks run."""


class Raised(Exception):
    """What a body raised: some kinds cannot be raised again in a coroutine, or would end its loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Caller(Protocol):
    """How a body is called where it runs; one for each run, entered before its first stage and left after its last."""

    def __enter__(self) -> object: ...

    def __exit__(self, *error: object) -> None:
        """Give back what was made for the run."""

    async def call(self, run: PipelineRun) -> object:
        """Return what the body returns."""

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what this comes to; it is cancelled if the run is stopped."""

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Come back when this is over, also if the run is stopped."""

    def is_own(self, error: BaseException) -> bool:
        """Whether an error is for whoever runs bodies here, rather than what the run came to."""

    def met(self, claim: Claim, error: BaseException) -> None:
        """Be told of an exception of the body before it becomes a report."""


async def run_through(claim: Claim, caller: Caller) -> Report:
    """Take a claim through all stages and return what it came to: whatever goes wrong on the way is a failure."""
    run = PipelineRun(claim)
    with arguments_from_outside(has_outside_arguments(claim.entrypoint)):
        try:
            with caller:
                report = await _until_closed(run, caller)
        except BaseException as error:
            if run.stage is not Stage.CLOSE or caller.is_own(error):
                raise
            report = failure_of(claim, error)
    return run.data.sign(report)


async def _until_closed(run: PipelineRun, caller: Caller) -> Report:
    try:
        report = await _judged(run, caller)
        run.stage = Stage.CLOSE
        return report
    finally:
        if run.data.is_open:
            await caller.finish(run.data.end())


async def _judged(run: PipelineRun, caller: Caller) -> Report:
    try:
        return await _through(run, caller)
    except Raised as raised:
        return _failed(run, caller, raised.error)
    except BaseException as error:
        if caller.is_own(error):
            raise
        return _failed(run, caller, error)


async def _through(run: PipelineRun, caller: Caller) -> Report:
    claim = run.claim
    if refers_to_objects(claim):
        run.opened = await caller.wait(run.data.open_arguments())
    run.stage = Stage.PREPARE
    run.function, run.kwargs = prepare(claim, run.opened)
    run.stage = Stage.CALL
    staging = new_staging(claim)
    with staged_in(staging), provided_by(run.data.context):
        await _call(run, caller)
        run.stage = Stage.LOWER
        await _lower(run, caller)
        run.stage = Stage.COMPLETE
        return await _complete(run, caller, staging)


def _failed(run: PipelineRun, caller: Caller, error: BaseException) -> Failure:
    if run.stage is Stage.PREPARE:
        return failure_of(run.claim, error, permanent=not isinstance(error, Stopped))
    caller.met(run.claim, error)
    return failure_of(run.claim, error)


# ---------------------------------------------------------------- prepare


def prepare(claim: Claim, opened: Opened) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function to call and its arguments; the user's module is imported. Secrets become their values."""
    with_secrets = may_name_secrets(claim)
    if with_secrets:
        mask_values(_arguments(claim, opened, importing=False))
    found = resolve(claim.entrypoint)  # first: what it imports may be where the types of its arguments are
    kwargs = _arguments(claim, opened)
    function = unwrap(found)
    check_call(function, kwargs, claim.entrypoint)
    if with_secrets and not hands_on_secrets(found):
        kwargs = reveal(kwargs)
    return function, kwargs


def _arguments(claim: Claim, opened: Opened, *, importing: bool = True) -> dict[str, Any]:
    results: Results | None = None

    def resolve(kind: str, payload: Any) -> Any:
        nonlocal results
        results = results or Results(
            claim.inputs,
            claim.members,
            claim.outputs,
            lambda kind, payload: opened[key_of(kind, payload)],
            importing=importing,
        )
        return results.resolve(kind, payload)

    return decode_kwargs(claim.kwargs_json, resolve, importing=importing)


# ---------------------------------------------------------------- call, lower, complete


async def _call(run: PipelineRun, caller: Caller) -> None:
    """Call the body; a parameter that is annotated as an Object gets one."""
    if wanting_objects(run.function):
        run.kwargs = await caller.wait(run.data.convert(run.function, run.kwargs))
    run.value = await caller.call(run)


async def _lower(run: PipelineRun, caller: Caller) -> None:
    if type(run.value) not in PLAIN and holds_data(run.value):
        run.value = await caller.wait(run.data.lower(run.value))


async def _complete(run: PipelineRun, caller: Caller, staging: Staging) -> Report:
    """What is too large for the state goes to ClickHouse; tables that the report refers to outlive the run."""
    report = completed(run.claim, run.value, staging)
    run.value = None  # it may be large, and is in the report
    if is_heavy(report):
        report = await caller.wait(run.data.lighten(report))
    return run.data.hand_on(report)
