"""Books the CPU time that each file of tests takes, with all processes that it starts, and prints it at the end.

CPU time hardly depends on what else the machine does, so that it shows what a change made quicker or slower. What a
server of databases takes is not in it: `scripts/test` prints the total with that. Where files are taken from a queue
(see `shares`), what it takes to import one is booked with the one before.

    python -m tests.support.cpu_times DIRECTORY

prints what several runs booked, which found this directory in TEST_CPU_DIRECTORY, and remembers it for `shares`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support import shares

SHOWN = 10
COLLECTING = "(collecting)"
DIRECTORY = "TEST_CPU_DIRECTORY"


class CpuTimes:
    """A plugin of pytest: seconds of CPU by file, and by test without what processes take that go on."""

    def __init__(self) -> None:
        self.by_file: defaultdict[str, float] = defaultdict(float)
        self.by_test: defaultdict[str, float] = defaultdict(float)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.booked, self.began = 0.0, time.monotonic()
        self.place = os.environ.pop(DIRECTORY, None)
        """Of this run, not of one that a test starts, which is in it."""

    def book(self, file: str) -> None:
        """Book for a file what was taken since the last booking."""
        now, at = cpu_seconds(), time.monotonic()
        self.by_file[file] += max(0.0, now - self.booked)
        self.seconds[file] += at - self.began
        self.booked, self.began = max(now, self.booked), at

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
        total = cpu_seconds()
        terminalreporter.section(f"most CPU seconds, with what was started: {SHOWN} files, {SHOWN} tests")
        for line in most(self.by_file, self.by_test):
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"{total:8.2f}  CPU seconds of this run, without servers of databases")
        if self.place:
            booked = {"cpu": total, "files": self.by_file, "tests": self.by_test, "seconds": self.seconds}
            Path(self.place, f"{os.getpid()}.json").write_text(json.dumps(booked))


def most(*booked: Mapping[str, float]) -> list[str]:
    """The largest of each, as lines."""
    largest = (sorted(each.items(), key=lambda pair: -pair[1])[:SHOWN] for each in booked)
    return [f"{seconds:8.2f}  {name}" for each in largest for name, seconds in each]


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


def tell(directory: Path) -> None:
    """Print what the parts of a run booked, and remember how long each file took."""
    files: dict[str, float] = {}
    tests: dict[str, float] = {}
    seconds = shares.known()
    total = 0.0
    for part in sorted(directory.glob("*.json")):
        booked = json.loads(part.read_text())
        total += booked["cpu"]
        files |= {name: taken + files.get(name, 0.0) for name, taken in booked["files"].items()}
        tests |= booked["tests"]
        seconds |= {name: taken for name, taken in booked["seconds"].items() if name != COLLECTING}
    print(f"== most CPU seconds, with what was started: {SHOWN} files, {SHOWN} tests")
    print(*most(files, tests), sep="\n")
    print(f"{total:8.2f}  CPU seconds of all parts, without servers of databases")
    shares.TIMES.parent.mkdir(exist_ok=True)
    shares.TIMES.write_text(json.dumps(seconds))


if __name__ == "__main__":
    tell(Path(sys.argv[1]))
