"""What watches bodies that run in the worker itself."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable

import pytest

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.inline_watchdog import InlineWatchdog
from aaiclick.orchestration.execution.runs.current import Running
from tests.support.bodies import claim_of


def running_of(**facts: object) -> Running:
    claim = claim_of("some.module.body")
    for name, value in facts.items():
        setattr(claim, name, value)
    return Running(claim)


def fate_of(work: Callable[[InlineWatchdog], None]) -> int:
    """How a process ends whose worker is cut off for good, and that does this."""
    pid = os.fork()
    if pid == 0:
        try:
            cutoff = Cutoff(1.0, 0.1)
            guard = InlineWatchdog(cutoff)
            cutoff.renewed(time.monotonic() - 100)
            guard.start()
            work(guard)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("stops", [True, False])
def test_a_body_that_outlasts_the_cut_off_ends_the_process_unless_it_may(stops: bool) -> None:
    def work(guard: InlineWatchdog) -> None:
        guard.begin(running_of(stop_when_cut_off=stops))
        threading.Event().wait(5.0 if stops else 0.6)

    assert fate_of(work) == (os.EX_TEMPFAIL if stops else 0)


def test_what_ended_before_ends_nothing() -> None:
    def work(guard: InlineWatchdog) -> None:
        running = running_of()
        guard.begin(running)
        guard.end(running)
        threading.Event().wait(0.6)

    assert fate_of(work) == 0


async def test_a_thread_that_was_asked_is_waited_for_while_the_worker_is_cut_off() -> None:
    """Its claim would else be given back, and another begin beside it."""
    cutoff = Cutoff(1000.0, 300.0)
    guard, running, gate = InlineWatchdog(cutoff), running_of(), threading.Event()
    running.thread = threading.Thread(target=gate.wait)
    running.thread.start()
    guard.begin(running)
    await guard.until_dead(running)  # not cut off: it is abandoned, as ever
    cutoff.renewed(time.monotonic() - 600)
    waiting = asyncio.create_task(guard.until_dead(running))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert running.asked_to_stop
    gate.set()
    await waiting
    assert not running.goes_on
