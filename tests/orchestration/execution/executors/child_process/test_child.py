"""A child, spoken to as a worker speaks to it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aaiclick.orchestration.execution.executors.child_process import child as child_process
from aaiclick.orchestration.execution.executors.nursery_client import ChildHandle, NurseryClient
from aaiclick.orchestration.execution.executors.run_answers import RunAnswers
from aaiclick.orchestration.execution.executors.shared_times import SharedTimes
from aaiclick.orchestration.execution.executors.transport import Outcome
from aaiclick.orchestration.execution.executors.wire import Ended, Inbox, RunMessage
from aaiclick.orchestration.models import Done
from tests.orchestration import growing_flows as flows
from tests.support import bodies, hostile, light_flow
from tests.support.bodies import claim_of, failure_in, result_in, until

PAGE = SharedTimes()
MODULES_MAX = 494
"""Python's own are among them, and what the workflow imports. Measured: 490."""


@pytest.fixture
async def child() -> AsyncIterator[ChildHandle]:
    nursery = NurseryClient(None, PAGE.fd)
    await nursery.until_ready()
    yield await nursery.fork()
    await nursery.close()


def begin(child: ChildHandle, body: object, **kwargs: object) -> asyncio.Future[Outcome]:
    sink = os.open(os.devnull, os.O_WRONLY)
    claim = claim_of(body, **kwargs)  # type: ignore[arg-type]
    answer = child.begin(RunMessage(claim, "the.log"), sink, RunAnswers(claim, None))
    os.close(sink)
    return answer


async def ended(answer: asyncio.Future[Outcome]) -> Ended:
    outcome = await answer
    assert isinstance(outcome, Ended)
    return outcome


async def test_a_request_to_stop_that_comes_between_runs_came_too_late(child: ChildHandle) -> None:
    await begin(child, bodies.nothing)
    child.ask()
    child.ask()
    report = (await ended(begin(child, bodies.who_am_i))).report
    assert report is not None
    assert result_in(report)[-1] is False


async def test_a_coroutine_is_cancelled_when_the_worker_asks(child: ChildHandle, tmp_path: Path) -> None:
    answer = begin(child, bodies.waits, path=str(tmp_path / "x"))
    await until((tmp_path / "x.began").exists)
    child.ask()
    report = (await ended(answer)).report
    assert report is not None
    assert failure_in(report).error == "CancelledError"


async def test_a_signal_counts_only_when_the_worker_has_asked(child: ChildHandle, tmp_path: Path) -> None:
    answer = begin(child, hostile.sleeps_with_finally, path=str(tmp_path / "x"))
    await until((tmp_path / "x.began").exists)
    os.kill(child.pid, signal.SIGTERM)
    await asyncio.sleep(0.05)
    assert not answer.done()
    child.ask()
    child.tell()
    report = (await ended(answer)).report
    assert report is not None
    assert failure_in(report).error == "Stopped: stopped by the worker"
    assert (tmp_path / "x.stopped").exists()


async def test_threads_of_a_body_know_its_run(child: ChildHandle) -> None:
    report = (await ended(begin(child, hostile.asks_on_a_thread))).report
    assert report is not None
    assert result_in(report) == ["asks_on_a_thread", "the.log"]


async def test_a_child_says_when_it_should_not_run_another(child: ChildHandle) -> None:
    assert not (await ended(begin(child, bodies.nothing))).spent
    assert (await ended(begin(child, hostile.leaks_descriptors, count=100))).spent


async def test_a_report_of_many_children_arrives(child: ChildHandle) -> None:
    report = (await ended(begin(child, flows.several.function, n=20_000))).report
    assert isinstance(report, Done), report
    assert report.children is not None
    assert len(report.children.tasks) == 20_000


def test_a_report_that_is_too_large_becomes_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = claim_of(flows.several.function, n=1)
    monkeypatch.setattr(child_process, "report_bytes_max", lambda: 100)
    (said,) = Inbox().feed(child_process._said(claim, Done(claim.task_id, claim.epoch, "x" * 200), False))
    assert isinstance(said, Ended)
    assert said.failure is not None
    assert said.failure.permanent
    assert "AAICLICK_TASK_CHILDREN_MAX" in said.failure.error


@pytest.mark.parametrize("mark", ["@", "~"])
async def test_what_arguments_from_outside_name_is_judged(child: ChildHandle, mark: str) -> None:
    named = f"{mark}{flows.__name__}.names_a_function"
    for where in ("here", "on a thread"):
        report = (await ended(begin(child, named, name="subprocess.getoutput", where=where))).report
        assert report is not None
        assert "subprocess.getoutput cannot be run: from outside, these may be run" in failure_in(report).error
    report = (await ended(begin(child, f"{mark}{flows.__name__}.names_a_function_later", name="os.getcwd"))).report
    assert report is not None
    assert "os.getcwd cannot be run: from outside, these may be run" in failure_in(report).error


async def test_the_next_run_of_a_child_is_not_judged_for_the_last(child: ChildHandle) -> None:
    for mark, done in (("~", False), ("", True), ("~", False)):
        named = f"{mark}{flows.__name__}.names_a_function"
        report = (await ended(begin(child, named, name=f"{bodies.__name__}.nothing", where="here"))).report
        assert isinstance(report, Done) is done


async def test_it_knows_of_no_database(really_started: None, child: ChildHandle) -> None:
    """What runs bodies asks its worker: nothing that speaks SQL is imported, copied with each fork, and paid for."""
    report = (await ended(begin(child, light_flow.loaded.function))).report
    assert report is not None
    loaded = result_in(report)
    assert "aaiclick.orchestration.decorators" in loaded, "the flow was imported"
    speaking = ("sqlalchemy", "alembic", "aiosqlite", "asyncpg", "asyncmy", "sqlite3", "aaiclick.orchestration.store")
    assert [name for name in loaded if f"{name}.".startswith(tuple(f"{each}." for each in speaking))] == []
    assert len(loaded) <= MODULES_MAX
