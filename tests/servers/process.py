"""One server process of our own, in a private directory on a private port."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from . import guard

NO_SYNC = "TEST_NO_SYNC"
"""Set where no server need wait for the disk: what was committed outlives its process, not the machine."""
READY_WITHIN_S = 60
PORTS_TRIED_MAX = 3


class ServerDidNotStart(RuntimeError):
    """The server was not ready in time; its last words are in the message."""


class ServerEnded(ServerDidNotStart):
    """The server ended before it was ready; its last words are in the message."""


def unprivileged_account(*preferred: str) -> str:
    """The account a server runs under when we are root, which some servers refuse; empty to stay who we are."""
    if os.geteuid() != 0:
        return ""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in (*preferred, "nobody") if name in known)


@contextmanager
def private_directory(account: str) -> Iterator[Path]:
    """A temporary directory that `account` owns and can reach."""
    parent = Path(tempfile.gettempdir())
    if account and not others_can_reach(parent):
        parent = Path("/tmp")  # noqa: S108 (mkdtemp makes a directory of its own there)
    directory = Path(tempfile.mkdtemp(prefix="aaiclick-", dir=parent))
    try:
        if account:
            shutil.chown(directory, account, guard.primary_group(account))
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def others_can_reach(path: Path) -> bool:
    """Whether an account other than the owner may walk down to `path`."""
    path = path.resolve()
    return all(step.stat().st_mode & 0o001 for step in (path, *path.parents))


def run_once(command: list[str], *, directory: Path, account: str) -> None:
    """Run a preparing command to its end."""
    done = subprocess.run(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **guard.as_account(account),
    )
    if done.returncode != 0:
        raise ServerDidNotStart(f"{command[0]} failed with {done.returncode}:\n{done.stdout[-3000:]}")


@contextmanager
def serving(
    command_on: Callable[[int], list[str]],
    *,
    directory: Path,
    account: str,
    stop_signal: signal.Signals,
    is_ready: Callable[[int], bool],
) -> Iterator[int]:
    """Run a server and give its port."""
    port, process = start_on_a_free_port(command_on, is_ready, directory, account, stop_signal)
    try:
        yield port
    finally:
        stop(process)


def start_on_a_free_port(
    command_on: Callable[[int], list[str]],
    is_ready: Callable[[int], bool],
    directory: Path,
    account: str,
    stop_signal: signal.Signals,
) -> tuple[int, subprocess.Popen[bytes]]:
    """Start a server and wait for it; another port is tried when somebody takes ours before the server does."""
    attempts_left = PORTS_TRIED_MAX
    while True:
        attempts_left -= 1
        port = free_port()
        process = start(command_on(port), directory=directory, account=account, stop_signal=stop_signal)
        try:
            wait_until_ready(process, partial(is_ready, port), directory / "server.log")
            return port, process
        except BaseException as error:
            stop(process)
            if not (isinstance(error, ServerEnded) and attempts_left):
                raise


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def start(command: list[str], *, directory: Path, account: str, stop_signal: signal.Signals) -> subprocess.Popen[bytes]:
    leader = [sys.executable, "-I", guard.__file__, str(directory), account, stop_signal.name]
    return subprocess.Popen([*leader, *command], stdin=subprocess.PIPE, start_new_session=True)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Let go of the leash and see the server off."""
    if process.stdin:
        process.stdin.close()
    process.wait(guard.PATIENCE_S * 2)


def wait_until_ready(process: subprocess.Popen[bytes], is_ready: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while not is_ready():
        if process.poll() is not None:
            raise ServerEnded(f"it ended before it was ready: {last_words(log)}")
        if time.monotonic() > deadline:
            raise ServerDidNotStart(f"it was not ready within {READY_WITHIN_S} s: {last_words(log)}")
        time.sleep(0.02)


def last_words(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:] if log.exists() else "(it left no log)"


def answer_on(port: int, question: bytes = b"") -> bytes:
    """The first bytes that whoever listens on `port` says; empty when nobody does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(question)
            return connection.recv(64)
    except OSError:
        return b""
