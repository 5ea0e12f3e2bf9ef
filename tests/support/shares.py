"""Files of tests for processes that run side by side: each takes the next file when it has none left.

    python -m tests.support.shares QUEUE

writes the names of all files of tests to a file, the longest first. Each `pytest` that finds the name of this file in
TEST_QUEUE takes its files from there, so that all of them end at about the same time, whatever the machine does
besides. How long a file takes is known from the last run (see `cpu_times`); on a machine without one, it is as
`long_files.json` says, else guessed by the file's length.
"""

from __future__ import annotations

import fcntl
import gc
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
TIMES = ROOT / ".pytest_cache" / "aaiclick-times.json"
LONG_FILES = Path(__file__).parent / "long_files.json"
"""The seconds that the longest files took on another machine."""
S_PER_LINE = 0.01
QUEUE = "TEST_QUEUE"
FROZEN_EACH = 25
"""After so many files, what was imported is kept from the collector of garbage: it stays to the end."""


def take(queue: Path) -> str | None:
    """Take the next file; None when there are none left."""
    with queue.open("r+") as names:
        fcntl.flock(names, fcntl.LOCK_EX)
        name, _, rest = names.read().partition("\n")
        names.seek(0)
        names.write(rest)
        names.truncate()
    return name or None


class Taking:
    """A plugin of pytest: runs files from a queue until it is empty.

    Which files there are is looked for at the beginning. Each is imported when it is taken, before the last test of the
    file before it: pytest ends what a test has set up when it knows which is next.
    """

    def __init__(self, queue: Path, folder: Path = TESTS) -> None:
        self.queue, self.folder = queue, folder
        self.files: dict[str, pytest.Collector] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        session.perform_collect([str(self.folder)], genitems=False)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """The folder of all tests comes here first, while what `conftest` files below it define can still be added."""
        if not self.files:
            self.find_files(items)
            items.clear()

    def find_files(self, nodes: Sequence[pytest.Collector]) -> None:
        for node in nodes:
            if not isinstance(node, pytest.Directory):
                self.files[node.path.relative_to(self.folder.parent).as_posix()] = node
                continue
            report = node.ihook.pytest_make_collect_report(collector=node)
            node.ihook.pytest_collectreport(report=report)
            self.find_files(report.result)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = self.taken(session)
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True

    def taken(self, session: pytest.Session) -> Iterator[pytest.Item]:
        """The tests of one file after the other; one that cannot be imported is reported, and fails the run."""
        for number in count(1):
            if (name := take(self.queue)) is None:
                return
            if number % FROZEN_EACH == 0:
                gc.collect()
                gc.freeze()
            found = list(session.genitems(self.files[name]))
            session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=found)
            session.items += found
            session.testscollected = len(session.items)
            yield from found

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:  # the others were quicker
            session.exitstatus = pytest.ExitCode.OK


def known() -> dict[str, float]:
    """Return the seconds that each file took when it was run last; remembered only on this machine."""
    with suppress(OSError, ValueError):
        times: dict[str, float] = json.loads(TIMES.read_text())
        return times
    return {}


def files_of_tests(places: Sequence[Path], times: Mapping[str, float]) -> dict[str, float]:
    """All of them, and how long each may take."""
    found = sorted({file for place in places for file in place.rglob("test_*.py")})
    named = {file.relative_to(ROOT).as_posix(): file for file in found}
    return {name: times.get(name, S_PER_LINE * file.read_text().count("\n")) for name, file in named.items()}


def longest_first(files: Mapping[str, float]) -> list[str]:
    """Their names; what takes long and comes last would be waited for."""
    return sorted(files, key=lambda name: (-files[name], name))


def main(queue: str) -> None:
    elsewhere: dict[str, float] = json.loads(LONG_FILES.read_text())
    names = longest_first(files_of_tests([TESTS], elsewhere | known()))
    Path(queue).write_text("".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main(*sys.argv[1:])
