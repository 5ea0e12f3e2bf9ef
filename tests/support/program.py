"""A command of ours as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import warm

ROOT = Path(__file__).parents[2]
GONE = 'cd "$PLACE" && rmdir "$PLACE" && exec "$0" "$@"'
"""For a shell: in a directory that is there no more."""


@contextmanager
def program(tmp_path: Path, *arguments: str, shell: str = "", **more: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process, with a local root of its own; ended with the block."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "AAICLICK_LOCAL_ROOT": str(tmp_path / "root")}
    command = [sys.executable, "-m", "aaiclick", *arguments]
    process = warm.Popen(
        ["sh", "-c", shell, *command] if shell else command,
        env={name: value for name, value in (environment | more).items() if value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
