"""Bodies in the worker itself: what differs from those in children."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.executors.inline import InlineExecutor
from aaiclick.orchestration.execution.runs import output_capture
from tests.support import bodies, hostile
from tests.support.bodies import claim_of, log_of, result_in, until


@pytest.fixture
async def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[InlineExecutor]:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    reset_settings()
    executor = InlineExecutor()
    await executor.start()
    yield executor
    await executor.close()


async def test_a_silent_run_leaves_no_file(executor: InlineExecutor, tmp_path: Path) -> None:
    report = await executor.run(claim_of(bodies.nothing), lambda path: None)
    assert report.log_path is None
    assert not (tmp_path / "logs").exists()


async def test_a_coroutine_runs_in_the_workers_loop_and_a_function_on_a_thread(executor: InlineExecutor) -> None:
    (_, in_main_thread, _) = result_in(await executor.run(claim_of(hostile.who), lambda path: None))
    assert not in_main_thread


async def test_a_function_whose_run_is_cancelled_is_abandoned_and_asked(
    executor: InlineExecutor, tmp_path: Path
) -> None:
    task = asyncio.create_task(executor.run(claim_of(bodies.asks, path=str(tmp_path / "x")), lambda path: None))
    await until((tmp_path / "x.began").exists)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await until((tmp_path / "x.stopped").exists)


async def test_what_is_said_outside_of_runs_is_in_no_log(executor: InlineExecutor) -> None:
    claim = claim_of(bodies.says_async, text="inside", times=20)
    run = asyncio.create_task(executor.run(claim, lambda path: None))
    while not run.done():
        print("outside")
        await asyncio.sleep(0.001)
    assert log_of(await run) == "inside\n" * 20


async def test_streams_that_someone_replaced_are_captured_again(
    executor: InlineExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    assert log_of(await executor.run(claim_of(bodies.says, text="x"), lambda path: None)) == "x\n"
    assert isinstance(sys.stdout, output_capture.RunStream)


async def test_closing_gives_the_streams_back() -> None:
    before = sys.stdout, sys.stderr
    executor = InlineExecutor()
    await executor.start()
    executor.kill()
    await executor.close()
    assert (sys.stdout, sys.stderr) == before
