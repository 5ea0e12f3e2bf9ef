"""One conformance suite for executors, each in both run modes: our own, and a plug-in of others that is installed.

It asks them for what tasks rely on: a result, a log, failures that are tried again or not, an end when they are stopped
or out of time, Secrets that appear nowhere, and a key that is the same for every attempt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
import pytest_asyncio

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.executors.contract import Executor
from aaiclick.orchestration.execution.executors.inline import InlineExecutor
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from aaiclick.orchestration.models import Claim, Report
from aaiclick.orchestration.rules.retries import GiveUp, Retry, RetryPolicy, after_failure
from aaiclick.orchestration.rules.secrets import Secret
from aaiclick.orchestration.submitting import executors
from tests.support import plug_in, web
from tests.support.bodies import claim_of, failure_in, is_alive, log_of, result_in, until

SECRET = "rosebud-4711-rosebud"


class Sample(Protocol):
    """How one executor is told to do these things."""

    name: str

    def returns(self, value: object) -> dict[str, Any]: ...
    def prints(self, text: object) -> dict[str, Any]: ...
    def fails(self) -> dict[str, Any]: ...
    def fails_for_good(self) -> dict[str, Any] | None: ...
    def hangs(self) -> dict[str, Any]: ...
    def has_begun(self) -> bool: ...
    def is_over(self) -> bool: ...
    def notes_key(self) -> dict[str, Any]: ...
    def keys(self) -> list[str]: ...


class ShellSample:
    name = "shell"

    def __init__(self, place: Path) -> None:
        self.pids, self.noted = place / "pids", place / "keys"

    def returns(self, value: object) -> dict[str, Any]:
        return {"argv": ["printf", "%s", json.dumps(value)], "result": "json"}

    def prints(self, text: object) -> dict[str, Any]:
        return {"argv": 'echo "$TEXT"; echo "$TEXT" >&2', "env": {"TEXT": text}, "result": "none"}

    def fails(self) -> dict[str, Any]:
        return {"argv": "exit 3"}

    def fails_for_good(self) -> dict[str, Any]:
        return {"argv": "exit 3", "retry_codes": [75]}

    def hangs(self) -> dict[str, Any]:
        """With a process that ignores the signal, in the background of another."""
        script = f"(trap '' TERM; while :; do sleep 0.1; done) & echo $! $$ > {self.pids}; wait; sleep 1000"
        return {"argv": script, "grace_s": 0.05}

    def has_begun(self) -> bool:
        return self.pids.exists() and len(self.pids.read_text().split()) == 2

    def is_over(self) -> bool:
        return not any(is_alive(int(pid)) for pid in self.pids.read_text().split())

    def notes_key(self) -> dict[str, Any]:
        return {"argv": f'echo "$IDEMPOTENCY_KEY" >> {self.noted}'}

    def keys(self) -> list[str]:
        return self.noted.read_text().split()


class RestSample:
    name = "rest"

    def __init__(self, server: web.Web) -> None:
        self.server = server

    def returns(self, value: object) -> dict[str, Any]:
        return {"method": "GET", "url": f"{self.server.url}/value", "params": {"json": json.dumps(value)}}

    def prints(self, text: object) -> dict[str, Any]:
        said = {} if isinstance(text, Secret) else {"Y": str(text)}
        path = "/status/200" if isinstance(text, Secret) else f"/status/200/../{text}"
        self.server.will_answer(path, (200, {}, "ok"))
        return {"method": "GET", "url": self.server.url + path, "headers": {"X": text, **said}}

    def fails(self) -> dict[str, Any]:
        return {"method": "GET", "url": f"{self.server.url}/status/503"}

    def fails_for_good(self) -> dict[str, Any]:
        return {"method": "GET", "url": f"{self.server.url}/status/404"}

    def hangs(self) -> dict[str, Any]:
        return {"method": "POST", "url": f"{self.server.url}/hangs"}

    def has_begun(self) -> bool:
        return self.server.hanging.is_set()

    def is_over(self) -> bool:
        return self.server.dropped.is_set()

    def notes_key(self) -> dict[str, Any]:
        return {"method": "POST", "url": f"{self.server.url}/status/200"}

    def keys(self) -> list[str]:
        return [asked.headers["Idempotency-Key"] for asked in self.server.asked]


class PlugInSample:
    name = "sample"

    def __init__(self, place: Path) -> None:
        self.noted, self.key_file = place / "noted", place / "keys"

    def returns(self, value: object) -> dict[str, Any]:
        return {"value": value}

    def prints(self, text: object) -> dict[str, Any]:
        return {"text": text}

    def fails(self) -> dict[str, Any]:
        return {"error": "no"}

    def fails_for_good(self) -> None:
        return None

    def hangs(self) -> dict[str, Any]:
        return {"hangs": str(self.noted)}

    def has_begun(self) -> bool:
        return self.noted.exists()

    def is_over(self) -> bool:
        return self.noted.read_text() == "over"

    def notes_key(self) -> dict[str, Any]:
        return {"key_to": str(self.key_file)}

    def keys(self) -> list[str]:
        return self.key_file.read_text().split()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The plug-in's distribution is on the path of this process, and of those it starts."""
    place = str(plug_in.install(tmp_path_factory.mktemp("site")))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(place)
        patch.setenv("PYTHONPATH", place)
        patch.setenv("ROSEBUD", SECRET)
        patch.setenv("AAICLICK_CANCEL_GRACE_SECONDS", "30")
        patch.setenv("AAICLICK_LOG_DIR", str(tmp_path_factory.mktemp("logs")))
        executors._plug_ins.cache_clear()
        reset_settings()
        yield
    executors._plug_ins.cache_clear()
    reset_settings()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["inline", "process"])
async def mode(request: pytest.FixtureRequest, installed: None) -> AsyncIterator[Executor]:
    executor: Executor = InlineExecutor() if request.param == "inline" else ProcessExecutor(1)
    await executor.start()
    yield executor
    await executor.close()


@pytest.fixture(params=["shell", "rest", "sample"])
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sample]:
    if request.param == "rest":
        with web.serving() as server:
            yield RestSample(server)
    else:
        yield ShellSample(tmp_path) if request.param == "shell" else PlugInSample(tmp_path)


def asking(sample: Sample, given: dict[str, Any], timeout_s: float | None = None) -> Claim:
    return claim_of(f"{sample.name}:", timeout_s=timeout_s, **given)


async def run(mode: Executor, claim: Claim) -> Report:
    return await mode.run(claim, lambda _: None)


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_it_gives_a_result(mode: Executor, sample: Sample) -> None:
    value = {"größe": [1, 2.5, None, "😀"]}
    assert result_in(await run(mode, asking(sample, sample.returns(value)))) == value


async def test_what_it_says_is_in_the_log_of_the_run(mode: Executor, sample: Sample) -> None:
    report = await run(mode, asking(sample, sample.prints("a-word-of-its-own")))
    result_in(report)
    assert "a-word-of-its-own" in log_of(report)


async def test_a_secret_reaches_it_and_appears_nowhere(mode: Executor, sample: Sample) -> None:
    report = await run(mode, asking(sample, sample.prints(Secret("env:ROSEBUD"))))
    result_in(report)
    if isinstance(sample, RestSample):
        assert sample.server.asked[0].headers["X"] == SECRET
    else:
        assert "***" in log_of(report)
    assert SECRET not in log_of(report) + str(report)


async def test_a_failure_is_tried_again_unless_it_is_final(mode: Executor, sample: Sample) -> None:
    policy = RetryPolicy(max_retries=5)
    failure = failure_in(await run(mode, asking(sample, sample.fails())))
    assert not failure.permanent
    assert not failure.crashed
    assert isinstance(after_failure(policy, 0, failure.error_types, 0.5), Retry)
    if (final := sample.fails_for_good()) is not None:
        failure = failure_in(await run(mode, asking(sample, final)))
        assert isinstance(after_failure(policy, 0, failure.error_types, 0.5), GiveUp)


async def test_it_ends_when_the_run_is_stopped(mode: Executor, sample: Sample) -> None:
    running = asyncio.create_task(run(mode, asking(sample, sample.hangs())))
    await until(sample.has_begun)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(sample.is_over)
    assert result_in(await run(mode, asking(sample, sample.returns(1)))) == 1


async def test_it_ends_when_its_time_is_up(mode: Executor, sample: Sample) -> None:
    running = asyncio.create_task(run(mode, asking(sample, sample.hangs(), timeout_s=1.0)))
    failure = failure_in(await running)
    assert failure.error_types[0] == "aaiclick.errors.TaskTimeout"
    if sample.has_begun():  # a machine that is very busy may not have come so far
        await until(sample.is_over)


async def test_its_key_is_the_same_for_every_attempt_until_the_task_is_cleared(mode: Executor, sample: Sample) -> None:
    claim = asking(sample, sample.notes_key())
    again = replace(claim, epoch=claim.epoch + 1, attempt=2)
    cleared = replace(claim, epoch=claim.epoch + 2, generation=1)
    for each in (claim, again, cleared):
        result_in(await run(mode, each))
    assert sample.keys() == [claim.idempotency_key, again.idempotency_key, cleared.idempotency_key]
    assert sample.keys()[0] == sample.keys()[1] != sample.keys()[2]


async def test_an_option_that_it_does_not_have_fails_for_good(mode: Executor, sample: Sample) -> None:
    failure = failure_in(await run(mode, asking(sample, {**sample.returns(1), "no_such_option": 1})))
    assert failure.permanent
    assert "no_such_option" in failure.error


async def test_a_worker_that_does_not_offer_it_refuses(
    mode: Executor, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(mode, ProcessExecutor):
        return  # its children read the settings when they begin
    monkeypatch.setenv("AAICLICK_EXECUTORS", "python")
    reset_settings()
    failure = failure_in(await run(mode, asking(sample, sample.returns(1))))
    assert "offers only these executors: python" in failure.error
    monkeypatch.undo()
    reset_settings()
