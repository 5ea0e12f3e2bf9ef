"""The examples that people recognise run as they are, each in a process and a local root of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support import warm

ROOT = Path(__file__).parents[2]
LONG = "TEST_LONG" in os.environ
ROWS = 10_000_000 if LONG else 100_000
SAID = {
    ("word_count.py",): "   5 the\n   4 was\n   3 and\n   2 hare\n   2 slow\n",
    ("crawl.py",): "9 pages, 3 clicks from the first, 13 tasks\n",
    ("map_reduce.py", "--rows", str(ROWS), "--partition", str(ROWS // 20)): f"{ROWS:,} rows in 46 tasks; the hottest: ",
}


@pytest.mark.parametrize("command", SAID, ids=lambda command: str(command[0]))
def test_an_example_runs_and_says_what_it_found(command: tuple[str, ...], tmp_path: Path) -> None:
    done = warm.run(
        [sys.executable, str(ROOT / "examples" / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "AAICLICK_LOCAL_ROOT": str(tmp_path / "root"), "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.startswith(SAID[command])


def test_every_example_is_run() -> None:
    files = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert files == {"demo.py", *(command[0] for command in SAID)}
