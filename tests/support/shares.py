"""Files of tests in shares that take about equally long, for processes that run them side by side.

    python -m tests.support.shares COUNT

prints a line of files for each. How long a file takes is known from the last run (see `cpu_times`); on a machine
without one, it is as `long_files.json` says, else guessed by the file's length. The first share is smaller: its process
checks the types before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMES = ROOT / ".pytest_cache" / "aaiclick-times.json"
LONG_FILES = Path(__file__).parent / "long_files.json"
"""The seconds that the longest files took on another machine."""
FIRST_HAS_S = 40.0
S_PER_LINE = 0.01


def shares(count: int, files: Mapping[str, float]) -> list[list[str]]:
    """The longest first, each to the share that has least."""
    loads = [FIRST_HAS_S if not number else 0.0 for number in range(count)]
    found: list[list[str]] = [[] for _ in range(count)]
    for file, seconds in sorted(files.items(), key=lambda pair: (-pair[1], pair[0])):
        least = loads.index(min(loads))
        loads[least] += seconds
        found[least].append(file)
    return [sorted(share) for share in found]


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


if __name__ == "__main__":
    elsewhere: dict[str, float] = json.loads(LONG_FILES.read_text())
    for each in shares(int(sys.argv[1]), files_of_tests([ROOT / "tests"], elsewhere | known())):
        print(*each)
