"""The worker's handles of nursery and children."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aaiclick.orchestration.execution.executors import forks
from aaiclick.orchestration.execution.executors.forks import Nursery, NurseryLost
from aaiclick.orchestration.execution.executors.page import Page
from aaiclick.orchestration.execution.executors.wire import Ended, Run
from tests.support import bodies
from tests.support.bodies import claim_of, is_alive, result_in, until

PAGE = Page()


@pytest.fixture
async def nursery() -> AsyncIterator[Nursery]:
    nursery = Nursery(None, PAGE.fd)
    await nursery.until_ready()
    yield nursery
    await nursery.close()


def nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY)


async def test_a_child_answers_each_run(nursery: Nursery) -> None:
    child = await nursery.fork()
    sink = nowhere()
    for value in (1, "x" * 700_000, None):
        outcome = await child.begin(Run(claim_of(bodies.echo, value=value), None), sink)
        assert isinstance(outcome, Ended)
        assert outcome.report is not None
        assert result_in(outcome.report) == value
    os.close(sink)


async def test_a_child_that_dies_at_once_is_buried(nursery: Nursery) -> None:
    births = [asyncio.create_task(nursery.fork()) for _ in range(5)]
    children = await asyncio.gather(*births)
    for child in children:
        child.signal(signal.SIGKILL)
    await until(lambda: not any(child.alive for child in children))
    assert not nursery.children


async def test_what_a_child_said_before_its_death_counts(nursery: Nursery, tmp_path: Path) -> None:
    child = await nursery.fork()
    sink = nowhere()
    answer = child.begin(Run(claim_of(bodies.touch, path=str(tmp_path / "x")), None), sink)
    os.close(sink)
    while not (tmp_path / "x").exists():
        time.sleep(0.01)  # noqa: ASYNC251 (the loop must not hear the answer yet)
    time.sleep(0.1)  # noqa: ASYNC251
    os.kill(child.pid, signal.SIGKILL)
    while is_alive(child.pid):
        time.sleep(0.01)  # noqa: ASYNC251
    assert isinstance(await answer, Ended)


async def test_nobody_can_ask_a_nursery_that_is_gone(nursery: Nursery) -> None:
    child = await nursery.fork()
    waiting = child.begin(Run(claim_of(bodies.sleeps, seconds=60.0), None), sink := nowhere())
    os.close(sink)
    os.kill(nursery.pid, signal.SIGKILL)
    assert await waiting is None
    assert not nursery.alive
    await until(lambda: not is_alive(child.pid))
    with pytest.raises(NurseryLost):
        await nursery.fork()
    child.signal(signal.SIGKILL)


async def test_a_nursery_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "NURSERY", "tests.support.no_such_nursery")
    nursery = Nursery(None, PAGE.fd)
    with pytest.raises(NurseryLost):
        await nursery.until_ready()
    await nursery.close()
