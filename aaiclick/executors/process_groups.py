"""Runs a command in a process group of its own, which ends with the command, with its caller, or with its process.

The group's leader is a guard: a small shell that waits for the end of a pipe and then kills the group, itself included.
The pipe ends when this process closes it or dies, however it dies. As long as the guard is there, the group's number
cannot mean other processes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

OUTPUT_S_MAX = 5.0
"""How long output is read on after the group is dead: a process that left the group may hold the pipe open."""

_SHELL = "/bin/sh"
_GUARD = "trap '' HUP INT QUIT TERM; read -r _; kill -s KILL 0"
_LIMITED = 'if [ -n "$1" ]; then ulimit -t "$1" || exit 126; fi; if [ -n "$2" ]; then ulimit -v "$2" || exit 126; fi; '
_LIMITED += 'shift 2; exec "$@"'

Heard = Callable[[bytes], object]


@dataclass(frozen=True)
class Command:
    """A command with its surroundings. `grace_s`: how long it may take to end after SIGTERM, before SIGKILL."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None = None
    stdin: bytes = b""
    cpu_s: int | None = None
    memory_mb: int | None = None
    grace_s: float = 5.0

    @property
    def limited(self) -> Sequence[str]:
        """The arguments by which it is started: behind a shell that sets the limits, if there are any."""
        if self.cpu_s is None and self.memory_mb is None:
            return self.argv
        cpu = "" if self.cpu_s is None else str(self.cpu_s)
        memory = "" if self.memory_mb is None else str(self.memory_mb * 1024)
        return (_SHELL, "-c", _LIMITED, "sh", cpu, memory, *self.argv)


async def run_command(command: Command, stdout: Heard, stderr: Heard) -> int:
    """Run a command to its end, and return its exit code; minus the number of the signal that ended it.

    Its output is given to `stdout` and `stderr` as it arrives. When this returns or raises, the whole group is dead;
    if it is cancelled, the group is told to end first. Raises OSError if the command cannot be started.
    """
    async with _group() as group:
        running = _Running(stdout, stderr)
        transport = await _start(command, group, running)
        try:
            if (pipe := transport.get_pipe_transport(0)) is not None:
                pipe.write(command.stdin)  # type: ignore[attr-defined]  # a WriteTransport
                pipe.close()  # once all is written
            await asyncio.wait([running.exited, running.failed], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _tell(command, group, running)
            raise
        finally:
            await _end(group, running, transport)
    if running.failed.done():
        running.failed.result()
    code = transport.get_returncode()
    assert code is not None
    return code


async def _start(command: Command, group: int, running: _Running) -> asyncio.SubprocessTransport:
    """Start a command. If this is cancelled, the command is ended, however far it has come.

    asyncio would kill the command's first process only, and then wait until the others have closed their pipes.
    """
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: running,
            *command.limited,
            stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=command.env,
            cwd=command.cwd,
            process_group=group,
        )
    )
    try:
        transport, _ = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            await _tell(command, group, running)
            await _end(group, running, starting.result()[0])
        raise
    return transport


async def _tell(command: Command, group: int, running: _Running) -> None:
    """Tell a group to end, and give it time to."""
    _signal(group, signal.SIGTERM)
    await asyncio.wait([running.exited], timeout=command.grace_s)


async def _end(group: int, running: _Running, transport: asyncio.SubprocessTransport) -> None:
    """Kill a group, and wait until the command is dead and its output read."""
    _signal(group, signal.SIGKILL)
    await asyncio.wait([running.exited])
    await asyncio.wait([running.silent], timeout=OUTPUT_S_MAX)
    transport.close()


class _Running(asyncio.SubprocessProtocol):
    """Follows a command: `exited` when it has ended, `silent` when its pipes have, `failed` when a listener raised."""

    def __init__(self, stdout: Heard, stderr: Heard) -> None:
        loop = asyncio.get_running_loop()
        self._heard = {1: stdout, 2: stderr}
        self._open = {1, 2}
        self.exited: asyncio.Future[None] = loop.create_future()
        self.silent: asyncio.Future[None] = loop.create_future()
        self.failed: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        try:
            self._heard[fd](data)
        except Exception as error:  # the log cannot be written, or the like: the command is ended for it
            if not self.failed.done():
                self.failed.set_exception(error)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open and not self.silent.done():
            self.silent.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


@asynccontextmanager
async def _group() -> AsyncIterator[int]:
    """Yield a new process group, led by its guard; at the end, all of it is dead."""
    guard = await asyncio.create_subprocess_exec(
        _SHELL,
        "-c",
        _GUARD,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        process_group=0,
    )
    try:
        yield guard.pid
    finally:
        _signal(guard.pid, signal.SIGKILL)
        await guard.wait()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
