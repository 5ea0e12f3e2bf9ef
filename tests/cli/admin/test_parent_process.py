"""Processes that end with their parent, by the kernel or by the end of stdin, and leave the engine to another."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from aaiclick.cli.admin import parent_process
from aaiclick.errors import InputError
from tests.cli.conftest import Cli

PART = """
import os, sys, time
from aaiclick.cli.admin import parent_process
parent_process.LINUX = {linux}
parent_process.end_with(os.getppid())
print("ready", flush=True)
time.sleep(600)
"""

PARENT = """
import subprocess, sys, time
part = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
time.sleep(600)
"""


@pytest.mark.parametrize("linux", [True, False] if parent_process.LINUX else [False])
def test_a_part_dies_with_its_parent(linux: bool) -> None:
    script = PART.format(linux=linux)
    starter = subprocess.Popen([sys.executable, "-c", PARENT, script], stdout=subprocess.PIPE)
    assert starter.stdout is not None
    with starter:
        assert starter.stdout.readline() == b"ready\n"
        starter.kill()
        ended = select.poll()  # select() takes no descriptor above 1023
        ended.register(starter.stdout)
        assert ended.poll(30_000)
        assert starter.stdout.read() == b"", "the part held the other end, and is gone"


def test_a_process_that_is_not_the_parent_is_refused() -> None:
    command = [sys.executable, "-m", "aaiclick", "--part-of", str(os.getppid()), "job", "list"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "it is not this process's parent" in done.stderr


def test_the_option_is_not_shown_to_people(cli: Cli) -> None:
    assert "--part-of" not in cli("--help").out


def test_the_error_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_process, "LINUX", True)
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: _Libc())
    with pytest.raises(InputError, match="--part-of: 1234567 is not accepted"):
        parent_process.end_with(1234567)


class _Libc:
    def prctl(self, *_: int) -> int:
        return 0
