"""Secrets become values just before a body runs, and appear nowhere, whoever runs it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration import Secret
from aaiclick.orchestration.execution.executors.contract import Executor
from aaiclick.orchestration.execution.executors.inline import InlineExecutor
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from aaiclick.orchestration.execution.runs import output_capture
from aaiclick.orchestration.execution.runs.pipeline import prepare, with_secrets
from aaiclick.orchestration.execution.runs.run_secrets import may_name_secrets
from aaiclick.orchestration.models import Claim, Done, Report
from aaiclick.orchestration.rules.values.encoding import encode_value
from aaiclick.telemetry import masks
from tests.support import secretive
from tests.support.bodies import claim_of, failure_in, log_of, result_in
from tests.support.secretive import VARIABLE

VALUE = "canary-7f3a/99é"
SECRET = Secret(f"env:{VARIABLE}")
EXECUTORS: dict[str, Callable[[], Executor]] = {"inline": InlineExecutor, "process": lambda: ProcessExecutor(1)}


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv(VARIABLE, VALUE)
    monkeypatch.setenv("SHORT_ONE", "1234567")
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("AAICLICK_SQL_URL", "postgresql+asyncpg://user:bird-in-url@localhost/x")
    reset_settings()
    masks.forget_all()
    yield
    masks.forget_all()


@pytest.fixture(params=sorted(EXECUTORS))
async def executor(request: pytest.FixtureRequest) -> AsyncIterator[Executor]:
    executor = EXECUTORS[request.param]()
    await executor.start()
    yield executor
    await executor.close()


async def run(executor: Executor, body: Callable[..., object], **kwargs: Any) -> Report:
    report = await executor.run(claim_of(body, **kwargs), lambda path: None)
    assert VALUE not in repr(report)
    return report


async def test_a_body_gets_the_values(executor: Executor) -> None:
    assert result_in(await run(executor, secretive.length, secret=SECRET)) == len(VALUE)
    assert result_in(await run(executor, secretive.nested, secrets={"login": ["user", SECRET]})) is True


async def test_what_a_body_prints_is_masked(executor: Executor) -> None:
    said = log_of(await run(executor, secretive.blab, secret=SECRET))
    assert VALUE not in said
    assert said.splitlines() == [
        "plain ***",
        "in an error '***'",
        "***",
        "WARNING theirs: logged ***",
        "***",
    ]


@pytest.mark.parametrize("executor", ["process"], indirect=True)
async def test_what_others_print_for_a_body_is_masked(executor: Executor) -> None:
    said = log_of(await run(executor, secretive.blab_below, secret=SECRET))
    assert said.splitlines() == ["***", "***"]


async def test_a_value_once_known_is_masked_in_later_runs_too(executor: Executor) -> None:
    assert isinstance(await run(executor, secretive.length, secret=SECRET), Done)
    assert VALUE not in log_of(await run(executor, secretive.print_environment))


async def test_errors_are_masked(executor: Executor) -> None:
    failure = failure_in(await run(executor, secretive.fail, secret=SECRET))
    assert failure.error == "ValueError: cannot log in with ***"
    assert "KeyError: '***'" in (failure.traceback or "")
    assert not failure.permanent


@pytest.mark.parametrize("body", [secretive.give_back, secretive.hand_on, secretive.add_to_context])
async def test_a_value_that_would_be_stored_is_refused(executor: Executor, body: Callable[..., object]) -> None:
    failure = failure_in(await run(executor, body, secret=SECRET))
    assert failure.error.startswith("ValueExposed: ")
    assert "contains the value of a Secret or the password of a database, which would be stored." in failure.error
    assert failure.permanent


async def test_a_body_may_hand_on_a_reference(executor: Executor) -> None:
    report = await run(executor, secretive.hand_on_reference, secret=SECRET)
    assert isinstance(report, Done)
    assert report.children is not None


async def test_a_variable_that_is_missing_fails_the_task_for_good(executor: Executor) -> None:
    failure = failure_in(await run(executor, secretive.length, secret=Secret("env:NOT_THERE")))
    assert failure.permanent
    assert failure.error == (
        "VariableUnusable: NOT_THERE, which a Secret names, cannot be used: the worker's environment has no such "
        "variable. Set NOT_THERE in the environment of the worker, restart it, and retry the task."
    )


async def test_a_value_that_is_too_short_to_be_masked_is_refused(executor: Executor) -> None:
    failure = failure_in(await run(executor, secretive.length, secret=Secret("env:SHORT_ONE")))
    assert failure.permanent
    assert "fewer than 8 characters" in failure.error
    assert "1234567" not in repr(failure)


async def test_the_password_of_our_own_database_is_masked_and_not_stored(executor: Executor) -> None:
    assert "bird-in-url" not in log_of(await run(executor, secretive.print_environment))
    failure = failure_in(await run(executor, secretive.return_address))
    assert failure.error.startswith("ValueExposed: ")
    assert "bird-in-url" not in repr(failure)


def arguments_of(claim: Claim) -> dict[str, Any]:
    """The arguments that the body gets."""
    return with_secrets(*prepare(claim, {}, may_name_secrets(claim)))


def test_a_workflow_and_an_operator_get_the_reference() -> None:
    assert arguments_of(claim_of("tests.support.secretive.with_a_login", secret=SECRET)) == {"secret": SECRET}
    expand: dict[str, Any] = {"verb": "map", "cbk": "x", "obj": [1], "partition": None, "batch": False, "fields": {}}
    asked = claim_of("aaiclick.orchestration.expansions._expand_map", **expand, args=[SECRET], kwargs={"s": SECRET})
    assert arguments_of(asked)["args"] == [SECRET]


def test_a_secret_among_results_is_resolved_too() -> None:
    claim = claim_of(secretive.length, secret=1)
    claim.kwargs_json = '{"secret":{"object_type":"pyobj","value":null,"marks":[[[],"task",5]]}}'
    claim.inputs = {5: encode_value(SECRET, bytes_max=1000)}
    assert arguments_of(claim) == {"secret": VALUE}


def test_what_a_thread_of_a_body_prints_is_masked_too(capsys: pytest.CaptureFixture[str]) -> None:
    masks.remember([VALUE])
    output_capture.install()
    try:
        print(f"on a thread: {VALUE}")
        sys.stdout.buffer.write(VALUE.encode())
    finally:
        output_capture.remove()
    assert capsys.readouterr().out == "on a thread: ***\n***"
