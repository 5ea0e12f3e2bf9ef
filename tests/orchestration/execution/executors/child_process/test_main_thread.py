"""Bodies in the main thread of a process: no loop until one is needed, and nothing left in it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from aaiclick.orchestration.execution.executors.child_process.child_environment import Growth
from aaiclick.orchestration.execution.executors.child_process.main_thread import MainThread, step
from aaiclick.orchestration.execution.executors.child_process.run_requests import RunRequests
from aaiclick.orchestration.execution.executors.questions import Answer, EngineWanted, Question
from aaiclick.orchestration.execution.runs.current import Running, cancel_requested, going_on
from aaiclick.orchestration.execution.runs.pipeline import PipelineRun, Raised, Stopped
from tests.support.bodies import claim_of

SEEN: list[str] = []


class Nobody:
    """A line to a worker that is not asked."""

    def ask(self, question: Question) -> Answer:
        raise AssertionError(question)

    def say(self, message: EngineWanted) -> None:
        raise AssertionError(message)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The worker's end of a line and the body's, while a run goes on."""
    SEEN.clear()
    running = Running(claim_of("a.body"))
    running.poll = lambda: True
    ours, theirs = socket.socketpair()
    with ours, theirs, going_on(running):
        yield ours, theirs


@pytest.fixture
def worker(ends: tuple[socket.socket, socket.socket]) -> socket.socket:
    """It asks to end the run by saying anything."""
    return ends[0]


@pytest.fixture
def caller(ends: tuple[socket.socket, socket.socket]) -> MainThread:
    return MainThread(ends[1], RunRequests(Nobody()), Growth())


def called(caller: MainThread, body: Callable[..., Any], **kwargs: object) -> object:
    run = PipelineRun(claim_of("a.body"))
    run.function, run.kwargs = body, kwargs
    return step(caller.call(run))


def test_a_plain_function_runs_outside_of_any_loop(caller: MainThread) -> None:
    with caller:
        assert called(caller, lambda: asyncio.run(asyncio.sleep(0, "its own"))) == "its own"


def test_what_is_returned_to_be_awaited_is(caller: MainThread) -> None:
    with caller:
        assert called(caller, lambda value: asyncio.sleep(0, value), value=5) == 5


def test_what_no_coroutine_can_raise_arrives_all_the_same(caller: MainThread) -> None:
    def body() -> None:
        raise StopIteration("enough")

    with caller, pytest.raises(Raised) as raised:
        called(caller, body)
    assert repr(raised.value.error) == "StopIteration('enough')"


def test_a_coroutine_is_cancelled_when_the_worker_asks_and_what_follows_goes_on(
    caller: MainThread, worker: socket.socket
) -> None:
    async def body() -> str:
        worker.send(b"x")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
        return f"asked {cancel_requested()}"

    with caller:
        assert called(caller, body) == "asked True"
        assert step(caller.wait(asyncio.sleep(0.01, "goes on"))) == "goes on"


async def _ends() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        SEEN.append("ended")


def test_nothing_goes_on_when_a_signal_strikes_between_two_steps_of_the_loop(caller: MainThread) -> None:
    def strike() -> None:
        raise Stopped("now")

    async def body() -> None:
        asyncio.get_running_loop().call_soon(strike)
        await _ends()

    with caller:
        with pytest.raises(Stopped):
            called(caller, body)
        assert SEEN == ["ended"]
        assert step(caller.finish(asyncio.sleep(0))) is None


def test_what_a_body_leaves_in_its_loop_ends_and_what_it_changes_is_put_back(caller: MainThread) -> None:
    left: list[asyncio.Task[None]] = []

    async def body() -> None:
        os.environ["AAICLICK_LEFT_BY_A_BODY"] = "x"
        left.append(asyncio.create_task(_ends()))
        await asyncio.sleep(0)

    with caller:
        called(caller, body)
        assert not SEEN
    assert SEEN == ["ended"]
    assert "AAICLICK_LEFT_BY_A_BODY" not in os.environ


def test_what_waits_for_a_loop_that_does_not_run_is_a_mistake() -> None:
    class Waits:
        def __await__(self) -> Generator[None, None, None]:
            yield

    async def waits() -> None:
        await Waits()

    with pytest.raises(AssertionError):
        step(waits())
