"""A child that watches itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from aaiclick.orchestration.execution.executors.child_process.child_watchdog import ChildWatchdog
from aaiclick.orchestration.execution.executors.shared_times import SharedTimes


def fate_of(work: Callable[[SharedTimes], None]) -> int:
    """How a process ends that does this in a session of its own: its exit code, or minus the signal."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            work(SharedTimes())
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("running", [True, False])
def test_it_ends_the_process_in_time_while_something_runs(running: bool) -> None:
    def work(page: SharedTimes) -> None:
        watch = ChildWatchdog(page)
        watch.start()
        page.write(0.0, time.monotonic() - 1)
        if running:
            watch.begin()
            signal.pause()  # nobody else ends it
        time.sleep(0.05)

    assert fate_of(work) == (-signal.SIGKILL if running else 0)


def test_a_run_is_asked_before() -> None:
    page = SharedTimes()
    watch = ChildWatchdog(page)
    page.write(time.monotonic() - 1, time.monotonic() + 100)
    assert not watch.is_asking()
    watch.begin()
    assert watch.is_asking()
    watch.end()
    assert not watch.is_asking()
