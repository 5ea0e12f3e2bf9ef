"""What a body logs carries the fields of its run, whoever runs it."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.executors.contract import Executor
from aaiclick.orchestration.execution.executors.inline import InlineExecutor
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from aaiclick.orchestration.execution.runs.run_scope import about_run, fields_of, in_scope_of
from aaiclick.telemetry.fields import bound_fields
from tests.support import bodies
from tests.support.bodies import claim_of, log_of

EXECUTORS: dict[str, Callable[[], Executor]] = {"inline": InlineExecutor, "process": lambda: ProcessExecutor(1)}


@pytest.fixture
async def executor(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Executor]:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("AAICLICK_LOG_FORMAT", "json")
    reset_settings()
    executor = EXECUTORS[request.param]()
    await executor.start()
    yield executor
    await executor.close()


@pytest.mark.parametrize(
    ("executor", "body"),
    [
        ("inline", bodies.log_here),
        ("inline", bodies.log_here_async),
        ("process", bodies.log_here),
        ("process", bodies.log_on_thread),  # inline, a thread does not say which of many runs it belongs to
    ],
    indirect=["executor"],
)
async def test_lines_of_a_body_carry_its_fields(executor: Executor, body: Callable[..., object]) -> None:
    claim = claim_of(body)
    line = json.loads(log_of(await executor.run(claim, lambda path: None)))
    assert {name: line.get(name) for name in ("job", "task", "epoch", "worker")} == {
        "job": "9",
        "task": str(claim.task_id),
        "epoch": "3",
        "worker": "1",
    }
    assert (line["message"], line["logger"], line["level"]) == ("here", "theirs", "WARNING")


def test_the_fields_of_a_run() -> None:
    claim = claim_of(bodies.nothing)
    with in_scope_of(claim):
        assert bound_fields() == {name: str(value) for name, value in fields_of(claim).items()}
    assert bound_fields() == {}
    made = logging.LogRecord("x", 20, "", 1, "", (), None)
    made.__dict__.update(about_run(claim))
    assert made.aaiclick_fields == fields_of(claim)  # type: ignore[attr-defined]
