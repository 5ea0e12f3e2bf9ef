"""The worker's handles of nursery and children."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aaiclick.orchestration.execution.executors import nursery_client
from aaiclick.orchestration.execution.executors.nursery_client import ChildHandle, NurseryClient, NurseryLost
from aaiclick.orchestration.execution.executors.questions import EngineWanted, IdsWanted, TablesWanted
from aaiclick.orchestration.execution.executors.run_answers import RunAnswers
from aaiclick.orchestration.execution.executors.shared_times import SharedTimes
from aaiclick.orchestration.execution.executors.transport import Lost, Outcome
from aaiclick.orchestration.execution.executors.wire import Broken, Ended, Message, Ready, RunMessage
from aaiclick.orchestration.models import Claim
from tests.support import bodies
from tests.support.bodies import claim_of, is_alive, result_in, until

PAGE = SharedTimes()


@pytest.fixture
async def nursery() -> AsyncIterator[NurseryClient]:
    nursery = NurseryClient(None, PAGE.fd)
    await nursery.until_ready()
    yield nursery
    await nursery.close()


def nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY)


def begin(child: ChildHandle, claim: Claim, sink: int) -> asyncio.Future[Outcome]:
    return child.begin(RunMessage(claim, None), sink, RunAnswers(claim, None))


async def test_a_child_answers_each_run(nursery: NurseryClient) -> None:
    child = await nursery.fork()
    sink = nowhere()
    for value in (1, "x" * 700_000, None):
        outcome = await begin(child, claim_of(bodies.echo, value=value), sink)
        assert isinstance(outcome, Ended)
        assert outcome.report is not None
        assert result_in(outcome.report) == value
    os.close(sink)


async def test_a_child_that_dies_at_once_is_buried(nursery: NurseryClient) -> None:
    births = [asyncio.create_task(nursery.fork()) for _ in range(5)]
    children = await asyncio.gather(*births)
    for child in children:
        child.signal(signal.SIGKILL)
    await until(lambda: not any(child.alive for child in children))
    assert not nursery.children


async def test_what_a_child_said_before_its_death_counts(nursery: NurseryClient, tmp_path: Path) -> None:
    child = await nursery.fork()
    sink = nowhere()
    answer = begin(child, claim_of(bodies.touch, path=str(tmp_path / "x")), sink)
    os.close(sink)
    while not (tmp_path / "x").exists():
        time.sleep(0.01)  # noqa: ASYNC251 (the loop must not hear the answer yet)
    time.sleep(0.1)  # noqa: ASYNC251
    os.kill(child.pid, signal.SIGKILL)
    while is_alive(child.pid):
        time.sleep(0.01)  # noqa: ASYNC251
    assert isinstance(await answer, Ended)


async def test_nobody_can_ask_a_nursery_that_is_gone(nursery: NurseryClient) -> None:
    child = await nursery.fork()
    waiting = begin(child, claim_of(bodies.sleeps, seconds=60.0), sink := nowhere())
    os.close(sink)
    os.kill(nursery.pid, signal.SIGKILL)
    assert await waiting == Lost("the process that had forked it died")
    assert not nursery.alive
    await until(lambda: not is_alive(child.pid))
    with pytest.raises(NurseryLost):
        await nursery.fork()
    child.kill()


async def test_a_nursery_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nursery_client, "NURSERY", "tests.support.no_such_nursery")
    nursery = NurseryClient(None, PAGE.fd)
    with pytest.raises(NurseryLost):
        await nursery.until_ready()
    await nursery.close()


@pytest.mark.parametrize("message", [EngineWanted(), IdsWanted(1, 5), TablesWanted(2, ["t1_1_1"])])
async def test_what_a_thread_asks_that_a_run_has_left_is_nobodys(nursery: NurseryClient, message: Message) -> None:
    child = await nursery.fork()
    child._take(message)
    sink = nowhere()
    assert isinstance(await begin(child, claim_of(bodies.nothing), sink), Ended)
    os.close(sink)


async def test_what_no_child_says_is_refused_between_runs(nursery: NurseryClient) -> None:
    child = await nursery.fork()
    with pytest.raises(Broken):
        child._take(Ready())
