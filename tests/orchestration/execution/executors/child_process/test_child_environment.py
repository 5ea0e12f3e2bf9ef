"""What is put back after a body, and how growth is noticed; what concerns a whole process is tried in children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.executors.child_process import child_environment
from aaiclick.orchestration.execution.executors.child_process.child_environment import ChildEnvironment, Growth


@pytest.fixture(autouse=True)
def without_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has some, of other tests."""
    monkeypatch.setattr(child_environment, "_has_children", lambda: False)


def test_what_was_changed_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "yes")
    handler, cwd = signal.getsignal(signal.SIGUSR1), os.getcwd()
    around = ChildEnvironment()
    os.environ["ADDED"] = "1"
    os.environ["KEPT"] = "no"
    os.chdir(tmp_path)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    around.restore()
    assert "ADDED" not in os.environ
    assert os.environ["KEPT"] == "yes"
    assert os.getcwd() == cwd
    assert signal.getsignal(signal.SIGUSR1) is handler
    assert signal.SIGUSR2 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_directory_that_is_gone_is_no_error(tmp_path: Path) -> None:
    cwd = os.getcwd()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    try:
        around = ChildEnvironment()
        (tmp_path / "gone").rmdir()
        os.chdir(tmp_path)
        around.restore()
    finally:
        os.chdir(cwd)


def test_a_process_that_has_not_grown_goes_on() -> None:
    growth = Growth()
    growth.begin()
    assert not growth.is_too_much()


def test_so_many_tasks_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_CHILD_TASKS_MAX", "2")
    reset_settings()
    growth = Growth()
    growth.begin()
    assert not growth.is_too_much()
    growth.begin()
    assert growth.is_too_much()


def test_memory_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_CHILD_GROWTH_MB", "20")
    reset_settings()
    growth = Growth()
    growth.begin()
    growth.imported()
    hoard = b"x" * 60_000_000
    assert growth.is_too_much()
    assert hoard


LEFT_BEHIND = """
import os, subprocess
from aaiclick.orchestration.execution.executors.child_process.child_environment import Growth
growth = Growth()
growth.begin()
child = subprocess.Popen(["sleep", "60"])
assert growth.is_too_much()
child.kill()
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
assert not growth.is_too_much()
"""


def test_a_process_left_behind_is_enough_and_a_dead_one_is_buried() -> None:
    env = os.environ | {"PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", LEFT_BEHIND], check=True, env=env)
