"""Books the CPU time that each file of tests takes, with all processes that it starts, and prints it at the end.

CPU time hardly depends on what else the machine does, so that it shows what a change made quicker or slower. What a
server of databases takes is not in it: `tests.servers` tells that.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from contextlib import suppress

import psutil
import pytest

SHOWN = 10
COLLECTING = "(collecting)"


class CpuTimes:
    """A plugin of pytest: seconds of CPU by file."""

    def __init__(self) -> None:
        self.by_file: defaultdict[str, float] = defaultdict(float)
        self.by_test: defaultdict[str, float] = defaultdict(float)
        self.booked = 0.0

    def book(self, file: str) -> None:
        """Book for a file what was taken since the last booking."""
        now = cpu_seconds()
        self.by_file[file] += max(0.0, now - self.booked)
        self.booked = max(now, self.booked)

    def pytest_collection_finish(self) -> None:
        self.book(COLLECTING)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None):
        own = own_seconds()
        try:
            return (yield)
        finally:
            self.by_test[item.nodeid] += own_seconds() - own
            if nextitem is None or nextitem.path != item.path:
                self.book(item.nodeid.partition("::")[0])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section(f"most CPU seconds, with what was started: {SHOWN} files, {SHOWN} tests")
        for taken in (self.by_file, self.by_test):
            for name, seconds in sorted(taken.items(), key=lambda pair: -pair[1])[:SHOWN]:
                terminalreporter.write_line(f"{seconds:8.2f}  {name}")
        terminalreporter.write_line(f"{cpu_seconds():8.2f}  CPU seconds of this run, without servers of databases")


def own_seconds() -> float:
    """What this process and those that it has seen end took."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def cpu_seconds() -> float:
    """What this process took, and all processes that it started, whether they still run or not."""
    total = own_seconds()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            taken = process.cpu_times()
            total += taken.user + taken.system + taken.children_user + taken.children_system
    return total
