"""The demo runs from a clone, shows what it promises, and its exit code is the job's outcome."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import warm

ROOT = Path(__file__).parents[2]


def run_demo(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, "AAICLICK_LOCAL_ROOT": str(tmp_path / "root"), "PYTHONPATH": str(ROOT)}
    surroundings["TMPDIR"] = str(tmp_path)
    return warm.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), "--rows=200", *options],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=surroundings | {"PYTHONIOENCODING": "utf-8"},
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def done(place: Path) -> subprocess.CompletedProcess[str]:
    """One run of the demo, at which the tests look."""
    return run_demo(place)


def lines_of(text: str, name: str) -> list[list[str]]:
    """The lines of the summary that begin with a task's name, as words after it."""
    return [line.split(name)[1].split() for line in text.splitlines() if line.strip().startswith(name + " ")]


def test_the_demo_completes_and_shows_its_graph_its_numbers_and_its_report(
    done: subprocess.CompletedProcess[str],
) -> None:
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert [line.strip() for line in done.stdout.splitlines() if line.endswith("/")] == [
        *("regions/", "north/", "east/", "west/")
    ]
    assert [words[:2] for words in lines_of(done.stdout, "parse 2026-01")] == [["completed", "1"]] * 3
    assert "tasks 23/23 completed" in done.stdout
    for region in ("north", "east", "west"):
        (line,) = re.findall(rf"^{region} +(\d+) +(\d+) +[\d,.]+  \w+$", done.stdout, re.MULTILINE)
        assert sum(map(int, line)) == 400


def test_the_demo_retries_the_step_that_fails_once(done: subprocess.CompletedProcess[str]) -> None:
    assert [words[:2] for words in lines_of(done.stdout, "exchange_rates")] == [["completed", "2"]]
    assert "exchange_rates, attempt 1: ConnectionError: the exchange is busy" in done.stdout


def test_a_demo_whose_job_fails_says_why_and_exits_with_1(tmp_path: Path) -> None:
    done = run_demo(tmp_path, "--fail")
    assert (done.returncode, done.stderr) == (1, "")
    assert "error ValueError: west-2026-02.csv has the columns" in done.stdout
    assert [words[:2] for words in lines_of(done.stdout, "report")] == [["upstream_failed", "0"]]
    assert "best product" not in done.stdout


def test_the_demo_leaves_nothing_but_its_state(done: subprocess.CompletedProcess[str], place: Path) -> None:
    assert [path.name for path in place.iterdir()] == ["root"]
