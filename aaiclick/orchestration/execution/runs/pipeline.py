"""The pipeline of one run, from a claim to its report: open, prepare, call, lower and complete.

It is the same wherever the body runs. How a body is called and how coroutines are awaited depends on the process, and
is implemented by a Caller: that of `runner` for the worker's own process, that of
`executors/child_process/main_thread` for a child process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum
from typing import Any, Protocol, TypeVar

from aaiclick.data.context import provided_by
from aaiclick.orchestration.execution.runs.executor_bodies import through_executor
from aaiclick.orchestration.execution.runs.failures import failure_of
from aaiclick.orchestration.execution.runs.remembered import Asked, ask, kept, policy_of
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
from aaiclick.orchestration.gathering import staged_in
from aaiclick.orchestration.models import Claim, Done, Failure, Report
from aaiclick.orchestration.results.task_results import Results
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, SIGN
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside, has_outside_arguments
from aaiclick.orchestration.rules.values.encoding import decode_kwargs
from aaiclick.orchestration.submitting.entrypoints import check_call, resolve, unwrap
from aaiclick.orchestration.submitting.executors import executor_in

T = TypeVar("T")


class Stage(Enum):
    """The stage that a run has reached."""

    OPEN = "open"
    """Opening the Objects that its arguments refer to."""
    PREPARE = "prepare"
    """Importing the function and decoding its arguments. A failure here is permanent, since it would repeat."""
    RECALL = "recall"
    """Asking for a remembered result, which ends the run on a hit."""
    CALL = "call"
    """Running the body."""
    LOWER = "lower"
    """Creating tables for the queries and frames that it returned."""
    COMPLETE = "complete"
    """Making the report of the result and the tasks that were made."""
    CLOSE = "close"
    """There is a report; releasing what the run opened."""


class PipelineRun:
    """The state of one run, which each stage fills further."""

    __slots__ = ("claim", "data", "function", "kwargs", "opened", "stage", "value")

    function: Callable[..., Any]
    kwargs: dict[str, Any]
    value: Any
    """The value that the body returned."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.data = RunData(claim)
        self.opened: Opened = {}
        self.stage = Stage.OPEN


class Stopped(SystemExit):
    """Raised in a body that the worker stops, so that its `finally` blocks run."""


class Raised(Exception):
    """Wraps an exception of a body: some kinds cannot be raised in a coroutine (StopIteration), or end the loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Caller(Protocol):
    """Calls a body in one kind of process. Each run has one, entered before its first stage and left after its last."""

    def __enter__(self) -> object: ...

    def __exit__(self, *error: object) -> None:
        """Release what was made for the run."""

    def call(self, run: PipelineRun) -> Awaitable[object]:
        """Call the body; the value is to be awaited."""

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine and return its value. It is cancelled if the run is stopped."""

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine to its end, also if the run is stopped."""

    def is_own(self, error: BaseException) -> bool:
        """Return whether an error concerns the process that runs the body and must be raised, not reported."""

    def met(self, claim: Claim, error: BaseException) -> None:
        """Called with an exception of the run before it becomes a report, for example to open a debugger."""


async def run_through(claim: Claim, caller: Caller) -> Report:
    """Take a claim through all stages and return its report. Errors become failures, except those of the Caller."""
    run = PipelineRun(claim)
    with arguments_from_outside(has_outside_arguments(claim.entrypoint)):
        try:
            with caller:
                try:
                    report = await _through(run, caller)
                    run.stage = Stage.CLOSE
                except BaseException as error:
                    report = _judged(run, caller, error)
                    run.stage = Stage.CLOSE
                finally:
                    if run.data.is_open:
                        await caller.finish(run.data.end())
        except BaseException as error:
            if run.stage is not Stage.CLOSE or caller.is_own(error):
                raise
            report = failure_of(claim, error)
    return run.data.sign(report)


async def _through(run: PipelineRun, caller: Caller) -> Report:
    """Go through the stages up to the report. They share one coroutine: more of them cost every run."""
    claim, data = run.claim, run.data
    if refers_to_objects(claim):
        run.opened = await caller.wait(data.open_arguments())
    run.stage = Stage.PREPARE
    secrets = may_name_secrets(claim)
    found, kwargs = prepare(claim, run.opened, secrets)
    asked: Asked | None = None
    if (policy := policy_of(claim, found)) is not None:
        run.stage = Stage.RECALL
        asked = await caller.wait(ask(claim, found, policy, kwargs, run.opened, data))
        if asked is not None and asked.answer.hit:
            return Done(claim.task_id, claim.epoch, asked.answer.result_json)
    run.stage = Stage.PREPARE
    run.function, run.kwargs = body_of(claim, found), with_secrets(found, kwargs) if secrets else kwargs
    run.stage = Stage.CALL
    staging = new_staging(claim, data.services)
    with staged_in(staging), provided_by(data.context):
        if wanting_objects(run.function):  # arguments of parameters that are annotated as Objects become Objects
            run.kwargs = await caller.wait(data.convert(run.function, run.kwargs))
        run.value = await caller.call(run)
        run.stage = Stage.LOWER
        if type(run.value) not in PLAIN and holds_data(run.value):
            run.value = await caller.wait(data.lower(run.value))
        run.stage = Stage.COMPLETE
        report = completed(claim, run.value, staging)
        run.value = None  # it may be large, and is in the report
        if is_heavy(report):  # too large for the database: to ClickHouse
            report = await caller.wait(data.lighten(report))
        if asked is not None:
            report = await caller.wait(kept(report, asked, data))
        return data.hand_on(report)


def _judged(run: PipelineRun, caller: Caller, error: BaseException) -> Failure:
    """Return the failure that an error of a stage means. Raise the error again if it is the Caller's own."""
    if isinstance(error, Raised):
        error = error.error
    elif caller.is_own(error):
        raise error
    if run.stage is Stage.PREPARE:
        return failure_of(run.claim, error, permanent=not isinstance(error, Stopped))
    caller.met(run.claim, error)
    return failure_of(run.claim, error)


# ---------------------------------------------------------------- prepare


def prepare(claim: Claim, opened: Opened, secrets: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Import the user's module. Return the function with its decorator, and the arguments with Secrets unrevealed.

    `secrets`: whether there may be Secrets among the arguments.
    """
    if secrets:
        mask_values(_arguments(claim, opened, importing=False))
    found = resolve(claim.entrypoint)  # first: its module may define or import the types of the arguments
    kwargs = _arguments(claim, opened)
    check_call(unwrap(found), kwargs, claim.entrypoint)
    return found, kwargs


def body_of(claim: Claim, found: object) -> Callable[..., Any]:
    """Return what is called: the function, or what hands it to the task's executor."""
    function = unwrap(found)
    executor = claim.executor if SIGN in claim.entrypoint else PYTHON
    if executor == PYTHON:  # the name says none; the decorator may
        executor = executor_in(found)
    return function if executor == PYTHON else through_executor(executor, claim.entrypoint, function)


def with_secrets(found: object, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with Secrets replaced by their values.

    A function that hands Secrets on, such as a workflow, gets them unchanged.
    """
    return kwargs if hands_on_secrets(found) else reveal(kwargs)


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
