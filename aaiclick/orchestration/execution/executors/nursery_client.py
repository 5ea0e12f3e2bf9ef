"""The worker's side of its nursery and of the children that it forks."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import subprocess
from contextlib import suppress
from typing import Any

from aaiclick.module_path import our_python, usual_place
from aaiclick.orchestration.execution.executors.questions import EngineWanted, Question
from aaiclick.orchestration.execution.executors.run_answers import RunAnswers
from aaiclick.orchestration.execution.executors.transport import Lost, NeverBegan, Outcome
from aaiclick.orchestration.execution.executors.wire import (
    CHUNK_BYTES,
    Born,
    Broken,
    Died,
    Ended,
    Fork,
    Inbox,
    Message,
    Ready,
    RunMessage,
    Signal,
    Spare,
    StopMessage,
    offer,
    packed,
    report_bytes_max,
)

NURSERY = "aaiclick.orchestration.execution.executors.nursery"
START_S_MAX = 60.0
HELD_BACK = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
HANG_UP_S = 1.0
"""How long after a child's line went dead its death may take to be told; then it is killed."""

Death = int | None
"""How a child died: the status of waitpid; None: its nursery died, and took it along."""


class NurseryLost(NeverBegan):
    """No process can be started: {cause}."""


class NurseryClient:
    """A running nursery."""

    def __init__(self, app_dir: str | None, page_fd: int) -> None:
        self.children: dict[int, ChildHandle] = {}
        self._births: dict[int, tuple[asyncio.Future[ChildHandle], socket.socket]] = {}
        self._serial = 0
        self._inbox = Inbox()
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._line, theirs = socket.socketpair()
        with theirs:
            self._process = _launch(theirs.fileno(), page_fd, app_dir)
        self._line.setblocking(False)
        self._loop.add_reader(self._line, self._read)

    @property
    def pid(self) -> int:
        """The nursery's process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._gone.is_set()

    async def until_ready(self) -> None:
        """Come back when it can fork."""
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), START_S_MAX)
        except TimeoutError:
            self._process.kill()
            raise NurseryLost(cause="the nursery did not start") from None

    async def fork(self) -> ChildHandle:
        """A new child."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._serial += 1
        birth: asyncio.Future[ChildHandle] = self._loop.create_future()
        self._births[self._serial] = birth, ours
        try:
            with theirs:
                self._tell(Fork(self._serial), theirs.fileno())
        except NurseryLost:
            self._births.pop(self._serial, None)
            ours.close()
            raise
        return await birth

    def signal(self, pid: int, number: int) -> None:
        """Signal a child and its group. It is the nursery that does so: it knows which process still bears the name."""
        if pid in self.children:
            with suppress(NurseryLost):
                self._tell(Signal(pid, number))

    def spare(self, pid: int, spared: bool) -> None:
        """Let a child live, or not, when this worker is cut off."""
        with suppress(NurseryLost):
            self._tell(Spare(pid, spared))

    async def close(self) -> None:
        """Let it kill every child, and end; one that has not begun has none, and need not begin."""
        if not self._ready.done():
            self._process.kill()
        with suppress(OSError):  # it is gone already
            self._line.shutdown(socket.SHUT_WR)
        try:
            await asyncio.wait_for(self._gone.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._gone.wait()
        while self._process.poll() is None:  # noqa: ASYNC110 (its line is closed: it is about to end)
            await asyncio.sleep(0.002)

    def _tell(self, message: Message, *fds: int) -> None:
        if not self.alive:
            raise NurseryLost(cause="the nursery is gone")
        try:
            offer(self._line, message, fds)  # a few bytes: they fit, or it does not read any more
        except OSError as error:
            raise NurseryLost(cause=error) from error

    def _read(self) -> None:
        try:
            data = self._line.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        for message in self._inbox.feed(data):
            self._take(message)

    def _take(self, message: Message) -> None:
        match message:
            case Ready() if not self._ready.done():
                self._ready.set_result(None)
            case Born(serial=serial):
                self._welcome(message, *self._births.pop(serial))
            case Died(pid=pid, status=status) if pid in self.children:
                self.children.pop(pid).bury(status)

    def _welcome(self, born: Born, birth: asyncio.Future[ChildHandle], line: socket.socket) -> None:
        """A child is known from here on: its death may be the next thing to be told."""
        if born.error:
            line.close()
            _settle(birth, NurseryLost(cause=born.error))
            return
        child = self.children[born.pid] = ChildHandle(self, born.pid, line)
        if birth.done():  # nobody waits for it any more
            child.kill()
        else:
            birth.set_result(child)

    def _lose(self) -> None:
        """It is gone: kill the groups of its children ourselves, since it no longer can."""
        self._loop.remove_reader(self._line)
        self._line.close()
        self._gone.set()
        self._process.poll()
        lost = NurseryLost(cause="the nursery died")
        _settle(self._ready, lost)
        for birth, line in self._births.values():
            line.close()
            _settle(birth, lost)
        self._births.clear()
        for pid, child in self.children.items():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            child.bury(None)
        self.children.clear()


def _launch(fd: int, page_fd: int, app_dir: str | None) -> subprocess.Popen[bytes]:
    """Start a nursery that speaks through this descriptor."""
    # a worker without stdio would pass them as some of the three
    passed, page = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 3) for each in (fd, page_fd))
    # a signal that is sent to all processes of a worker is the worker's to deal with: the nursery ignores it as soon as
    # it can, and is not ended by it before
    held = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    try:
        return subprocess.Popen(  # noqa: S603 (our own command)
            our_python(NURSERY, str(passed), str(page), usual_place() if app_dir is None else app_dir),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[passed, page],
            start_new_session=True,  # Ctrl-C in the terminal is the worker's to deal with
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        os.close(passed)
        os.close(page)


def _settle(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # nobody need have waited for it


class ChildHandle:
    """A child, as the worker sees it: the transport to it, which runs one thing at a time."""

    def __init__(self, nursery: NurseryClient, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self.alive = True
        self.spent = False
        self.hung_up = False
        self.killed = False
        self._spared = False
        self._nursery, self._line = nursery, line
        self._loop = asyncio.get_running_loop()
        self._inbox = Inbox(bytes_max=report_bytes_max())
        self._answer: asyncio.Future[Outcome] | None = None
        self._answers: RunAnswers | None = None
        self._sending: asyncio.Task[None] | None = None
        self._unsent: list[bytes] = []
        """What waits until the line takes more."""
        self._loop.add_reader(line, self._read)

    def begin(self, run: RunMessage, fd: int, answers: RunAnswers) -> asyncio.Future[Outcome]:
        """Send a run, and the descriptor for its output; what it asks is answered by these."""
        self._answer = answer = self._loop.create_future()
        self._answers = answers
        try:
            rest = offer(self._line, run, [fd])
        except OSError:
            self.spent = True
            raise
        if rest:
            self._send_soon(rest)
        return answer

    def spare(self) -> None:
        """Let its next run go on when this worker is cut off."""
        self._spared = True
        self._nursery.spare(self.pid, True)

    def ask(self) -> None:
        """Ask it to end its run."""
        self._say(StopMessage())

    def tell(self) -> None:
        """Interrupt its body."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and its group."""
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Signal it and its group; it is not used again."""
        self.spent = True
        self.killed = self.killed or number == signal.SIGKILL
        self._nursery.signal(self.pid, number)

    def bury(self, death: Death) -> None:
        """It is dead. What it said last still counts."""
        while self._read():
            pass
        self.alive = False
        self._loop.remove_reader(self._line)
        if self._sending is not None:
            self._sending.cancel()
        self._line.close()
        self._settle(self._lost(death))

    def _say(self, message: Message) -> None:
        """Send what must arrive, whenever the line takes it."""
        rest = packed(message)
        if not self._is_sending():
            try:
                rest = rest[self._line.send(rest) :]
            except BlockingIOError:
                pass
            except OSError:  # its death will be told
                return
        if rest:
            self._send_soon(rest)

    def _is_sending(self) -> bool:
        return self._sending is not None and not self._sending.done()

    def _send_soon(self, rest: bytes) -> None:
        self._unsent.append(rest)
        if not self._is_sending():
            self._sending = self._loop.create_task(self._send())

    async def _send(self) -> None:
        with suppress(OSError):  # its death will be told
            while self._unsent:
                await self._loop.sock_sendall(self._line, self._unsent.pop(0))

    def _read(self) -> bool:
        """Take what has arrived; False when nothing had."""
        try:
            data = self._line.recv(CHUNK_BYTES)
            for message in self._inbox.feed(data):
                self._take(message)
        except BlockingIOError:
            return False
        except (OSError, Broken):
            data = b""
        if not data:
            self._hang_up()
        return bool(data)

    def _take(self, message: Message) -> None:
        match message:
            case Ended():
                self.spent = self.spent or message.spent
                self._settle(message)
            case _ if self._answers is not None:
                self._answers.answer(message, self._say)
            case _ if not isinstance(message, Question | EngineWanted):  # those are of threads that a run has left
                raise Broken(f"a child does not say {type(message).__name__}")

    def _hang_up(self) -> None:
        """Its line is dead. Most likely so is the child; if not, it is killed."""
        self._loop.remove_reader(self._line)
        self.spent = True
        self._loop.call_later(HANG_UP_S, self._kill_if_alive)

    def _kill_if_alive(self) -> None:
        if self.alive:
            self.hung_up = not self.killed
            self.kill()

    def _lost(self, death: Death) -> Lost:
        """How it died, in words."""
        if death is None:
            return Lost("the process that had forked it died")
        if self.hung_up:
            return Lost("it closed its connection to the worker", "Leave descriptors alone that are not yours.")
        code = os.waitstatus_to_exitcode(death)
        if code >= 0:
            return Lost(f"exit code {code}")
        try:
            name = f"killed by signal {-code} ({signal.Signals(-code).name})"
        except ValueError:
            name = f"killed by signal {-code}"
        return Lost(name, "The machine may have run out of memory." if -code == signal.SIGKILL else "")

    def _settle(self, outcome: Outcome) -> None:
        answer, self._answer = self._answer, None
        if self._spared:
            self._spared = False
            self._nursery.spare(self.pid, False)
        answers, self._answers = self._answers, None
        if answers is not None:
            answers.end()
        if answer is not None and not answer.done():
            answer.set_result(outcome)
