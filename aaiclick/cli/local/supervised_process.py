"""One part of a fleet: a process that is started again when it ends, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from aaiclick.cli.local.fleet_events import Tell
from aaiclick.cli.output import printable
from aaiclick.module_path import our_python

STEADY_S = 10.0
"""A process that lived so long did not fail at its start."""

PAUSE_S_FIRST, PAUSE_S_MAX = 0.5, 30.0
HURRIES, HURRY_S = 5, 1.0
"""How often, and how long after each other, a process is told to end at once before it is killed."""

HOPELESS = (2, 6)
"""Exit codes for wrong use and for a database or engine that cannot be had: at the first start, others follow."""

UNSTARTED = 71
"""As sysexits.h numbers what the system refused."""

CHUNK_BYTES = 65536
LINE_BYTES_MAX = 8192
"""A longer line is passed on in pieces."""


def our_command(*arguments: str) -> list[str]:
    """Return the command line of a part that ends with this process."""
    return our_python("aaiclick", "--part-of", str(os.getpid()), *arguments)


def pause_s(short_lives: int) -> float:
    """Return the pause before the next start, after this many short lives in a row."""
    return min(PAUSE_S_FIRST * 2.0 ** min(short_lives - 1, 20), PAUSE_S_MAX) if short_lives else 0.0


def cause_of(code: int) -> str:
    """Return in words how a process ended."""
    if code >= 0:
        return f"ended with exit code {code}" if code else "ended"
    known = {int(each): each.name for each in signal.Signals}
    return f"was killed by {known.get(-code, f'signal {-code}')}"


class Life:
    """A process from its start to its end. Its output is passed on line by line."""

    def __init__(self, command: Sequence[str], hear: Callable[[str], None], descriptors: Sequence[int] = ()) -> None:
        self._hear = hear
        self._rest = b""
        self._loop = asyncio.get_running_loop()
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        try:
            self._process = subprocess.Popen(  # noqa: S603 (our own commands)
                command,
                stdin=subprocess.PIPE,  # nothing is written: its end tells that we are gone
                stdout=writing,
                stderr=writing,
                start_new_session=True,  # Ctrl-C in the terminal is ours to deal with
                pass_fds=descriptors,
            )
        except BaseException:
            os.close(self._reading)
            raise
        finally:
            os.close(writing)
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._reading, self._read)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if not self.ended.done():
            self._process.send_signal(number)

    def look(self) -> None:
        """Check whether the process has ended; called when a child may have ended."""
        code = self._process.poll()
        if code is None or self.ended.done():
            return
        while self._read():
            pass
        if self._rest:
            self._pass_on([self._rest])
        self._close()
        self.ended.set_result(code)

    def _read(self) -> bool:
        """Take what has been printed; False if nothing has."""
        if self._reading < 0:
            return False
        try:
            found = os.read(self._reading, CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not found:
            self._stop_reading()
            return False
        *lines, self._rest = (self._rest + found).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            lines, self._rest = [*lines, self._rest], b""
        self._pass_on(lines)
        return True

    def _pass_on(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            text = line.decode("utf-8", "backslashreplace").removeprefix("aaiclick: ")
            self._hear(printable(text.rstrip()))

    def _close(self) -> None:
        self._stop_reading()
        if self._process.stdin is not None:
            with suppress(OSError):  # its reader is gone, which is why
                self._process.stdin.close()

    def _stop_reading(self) -> None:
        if self._reading >= 0:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            self._reading = -1


class SupervisedProcess:
    """Keeps a process running; `descriptors` stay open for each of its lives."""

    def __init__(self, name: str, command: Sequence[str], tell: Tell, descriptors: Sequence[int] = ()) -> None:
        self.name = name
        self.over = asyncio.Event()
        """It does not run and is not restarted."""
        self._command = command
        self._descriptors = descriptors
        self._tell = tell
        self._life: Life | None = None
        self._renewed: Life | None = None
        self._stopping = asyncio.Event()

    async def keep(self) -> int:
        """Restart the process until it is stopped; return a code other than 0 if it cannot start at all."""
        try:
            return await self._keep()
        finally:
            self.over.set()

    async def _keep(self) -> int:
        clock = asyncio.get_running_loop().time
        lives = short_lives = 0
        while not self._stopping.is_set():
            began_s = clock()
            pid, code, cause = await self._live()
            lives += 1
            if self._stopping.is_set() or (lives == 1 and code in HOPELESS):
                self._tell("ended", part=self.name, pid=pid, code=code, cause=cause)
                return 0 if self._stopping.is_set() else code
            if self._life is not None and self._life is self._renewed:
                self._renewed, short_lives = None, 0
                self._tell("renewed", part=self.name, pid=pid, code=code, cause=cause)
                continue
            short_lives = 0 if clock() - began_s >= STEADY_S else short_lives + 1
            pause = pause_s(short_lives)
            self._tell("died", part=self.name, pid=pid, code=code, cause=cause, again_in_s=pause)
            await _either(self._stopping, pause)
        return 0

    async def _live(self) -> tuple[int, int, str]:
        """One life: its process, its exit code, and the cause of its end."""
        try:
            life = self._begin()
        except OSError as error:  # the machine has no more processes, memory or files to give: for now
            return 0, UNSTARTED, f"could not be started: {error.strerror or error}"
        code = await life.ended
        return life.pid, code, cause_of(code)

    def _begin(self) -> Life:
        def hear(text: str) -> None:
            self._tell("said", part=self.name, text=text)

        self._life = life = Life(self._command, hear, self._descriptors)
        self._tell("started", part=self.name, pid=life.pid)
        return life

    def look(self) -> None:
        """Check whether the process has ended."""
        if self._life is not None:
            self._life.look()

    async def renew(self, grace_s: float) -> None:
        """Restart the process: ask it to end, and kill it after its grace period."""
        life = self._life
        if life is None or life.ended.done() or self._stopping.is_set():
            return
        self._renewed = life
        life.signal(signal.SIGTERM)
        await asyncio.wait([life.ended], timeout=grace_s)
        life.signal(signal.SIGKILL)

    async def stop(self, grace_s: float, hurry: asyncio.Event) -> None:
        """Ask the process to end and wait; ask again when it is urgent; then kill it."""
        self._stopping.set()
        if self._life is None or self._life is not self._renewed:  # else it was asked before: twice means at once
            self._signal(signal.SIGTERM)
        ending = asyncio.create_task(self.over.wait())
        urgent = asyncio.create_task(hurry.wait())
        await asyncio.wait([ending, urgent], timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        for _ in range(HURRIES):
            if not self.over.is_set():
                self._signal(signal.SIGTERM)  # and again: two that come together are one
                await asyncio.wait([ending], timeout=HURRY_S)
        urgent.cancel()
        self.kill()
        await ending

    def kill(self) -> None:
        """Kill the process now."""
        self._stopping.set()
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._life is not None:
            self._life.signal(number)


@contextmanager
def deaths_seen_by(*parts: SupervisedProcess, later: Sequence[SupervisedProcess] = ()) -> Iterator[None]:
    """Notify the parts, and those added to `later`, when a child of this process has ended."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        for part in (*parts, *later):
            part.look()

    loop.add_signal_handler(signal.SIGCHLD, look)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCHLD)


async def _either(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, but not longer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
