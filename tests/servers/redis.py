"""Redis for tests."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .process import answer_on, private_directory, serving, unprivileged_account
from .programs import ServerMissing, find_program, install_packages

VARIABLE = "TEST_REDIS_URL"
PACKAGES = {"debian": "redis-server", "homebrew": "redis"}


@contextmanager
def server() -> Iterator[str]:
    """A Redis; yields its URL."""
    if given := os.environ.get(VARIABLE):
        yield given
        return
    program = find_programs()
    account = unprivileged_account("redis")
    with (
        private_directory(account) as directory,
        serving(
            lambda port: command(program, directory, port),
            directory=directory,
            account=account,
            stop_signal=signal.SIGKILL,
            is_ready=is_ready,
        ) as port,
    ):
        yield f"redis://127.0.0.1:{port}/0"


def command(program: Path, directory: Path, port: int) -> list[str]:
    """What starts a server that keeps nothing on the disk."""
    return [str(program), *("--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), "--save", "")]


def is_ready(port: int) -> bool:
    return answer_on(port, b"PING\r\n").startswith(b"+PONG")


def find_programs() -> Path:
    if found := find_program("redis-server"):
        return found
    if install_packages(**PACKAGES) and (found := find_program("redis-server")):
        return found
    raise ServerMissing(VARIABLE, **PACKAGES)
