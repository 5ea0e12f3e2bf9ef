"""Two times, in memory that processes share."""

from __future__ import annotations

import os

from aaiclick.orchestration.execution.executors.shared_times import SharedTimes


def test_what_one_writes_another_process_reads() -> None:
    page = SharedTimes()
    assert (page.ask_at, page.kill_at) == (float("inf"), float("inf"))
    pid = os.fork()
    if pid == 0:
        try:
            SharedTimes(os.dup(page.fd)).write(12.5, 13.25)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (page.ask_at, page.kill_at) == (12.5, 13.25)


def test_its_descriptor_goes_with_it() -> None:
    page = SharedTimes()
    fd = page.fd
    os.fstat(fd)
    del page
    try:
        os.fstat(fd)
    except OSError:
        return
    raise AssertionError("it is still open")
