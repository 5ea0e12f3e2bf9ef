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
"""How long to wait for the news of a child's death after its line was closed. Then the child is killed."""

Death = int | None
"""How a child died: the status of waitpid; None if its nursery died and the child with it."""


class NurseryLost(NeverBegan):
    """No process can be started: {cause}."""


class NurseryClient:
    """A nursery process and the children that it has forked. It belongs to the event loop that creates it."""

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
        """The pid of the nursery."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the nursery is running, as far as known."""
        return not self._gone.is_set()

    async def until_ready(self) -> None:
        """Wait until the nursery can fork. Raises NurseryLost if it does not start."""
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), START_S_MAX)
        except TimeoutError:
            self._process.kill()
            raise NurseryLost(cause="the nursery did not start") from None

    async def fork(self) -> ChildHandle:
        """Fork a child and return its handle. Raises NurseryLost if that fails."""
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
        """Signal a child and its process group. The nursery sends it, since it knows whether the pid is still valid."""
        if pid in self.children:
            with suppress(NurseryLost):
                self._tell(Signal(pid, number))

    def spare(self, pid: int, spared: bool) -> None:
        """Say whether a child may go on when this worker is cut off."""
        with suppress(NurseryLost):
            self._tell(Spare(pid, spared))

    async def close(self) -> None:
        """Let the nursery kill its children and end. A nursery that is not ready has none, and is killed."""
        if not self._ready.done():
            self._process.kill()
        with suppress(OSError):  # it has ended already
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
            offer(self._line, message, fds)  # a few bytes: they fit, unless the nursery has stopped reading
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
        """Register a new child at once: the next message may be that of its death."""
        if born.error:
            line.close()
            _settle(birth, NurseryLost(cause=born.error))
            return
        child = self.children[born.pid] = ChildHandle(self, born.pid, line)
        if birth.done():  # the caller of `fork` was cancelled
            child.kill()
        else:
            birth.set_result(child)

    def _lose(self) -> None:
        """Handle the nursery's death: kill the process groups of its children from here."""
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
    """Start a nursery that uses this descriptor as its line."""
    # numbers from 3 on: in a worker without stdio, they may be 0, 1 or 2
    passed, page = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 3) for each in (fd, page_fd))
    # a signal that is sent to all processes of a worker is for the worker to handle: the nursery ignores it once it has
    # started, and must not be ended by it before
    held = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    try:
        return subprocess.Popen(  # noqa: S603 (our own command)
            our_python(NURSERY, str(passed), str(page), usual_place() if app_dir is None else app_dir),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[passed, page],
            start_new_session=True,  # Ctrl-C in the terminal is for the worker to handle
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        os.close(passed)
        os.close(page)


def _settle(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # marks it as retrieved, in case no one awaits it


class ChildHandle:
    """The worker's handle of a child process: a Transport, which runs one body at a time."""

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
        """Bytes that wait until the socket accepts more."""
        self._loop.add_reader(line, self._read)

    def begin(self, run: RunMessage, fd: int, answers: RunAnswers) -> asyncio.Future[Outcome]:
        """Send a run and the descriptor for its output. Return a future of its outcome.

        `answers` replies to the run's questions. Raises OSError if the child cannot be reached.
        """
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
        """Let the next run go on if this worker is cut off. It ends with that run."""
        self._spared = True
        self._nursery.spare(self.pid, True)

    def ask(self) -> None:
        """Ask the child to end its run."""
        self._say(StopMessage())

    def tell(self) -> None:
        """Interrupt the body with SIGTERM."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the child and its process group."""
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Signal the child and its process group. The child is not used for another run."""
        self.spent = True
        self.killed = self.killed or number == signal.SIGKILL
        self._nursery.signal(self.pid, number)

    def bury(self, death: Death) -> None:
        """Handle the child's death, after reading the messages that it sent before."""
        while self._read():
            pass
        self.alive = False
        self._loop.remove_reader(self._line)
        if self._sending is not None:
            self._sending.cancel()
        self._line.close()
        self._settle(self._lost(death))

    def _say(self, message: Message) -> None:
        """Send a message, now or when the socket accepts it."""
        rest = packed(message)
        if not self._is_sending():
            try:
                rest = rest[self._line.send(rest) :]
            except BlockingIOError:
                pass
            except OSError:  # the nursery will tell of its death
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
        with suppress(OSError):  # the nursery will tell of its death
            while self._unsent:
                await self._loop.sock_sendall(self._line, self._unsent.pop(0))

    def _read(self) -> bool:
        """Read and handle the available messages. Return False if there were none, or the line is closed."""
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
            case _ if not isinstance(message, Question | EngineWanted):  # a thread that outlived its run may send these
                raise Broken(f"a child sent an unexpected {type(message).__name__}")

    def _hang_up(self) -> None:
        """Handle a closed line: most likely the child has died; if not, it is killed after `HANG_UP_S` seconds."""
        self._loop.remove_reader(self._line)
        self.spent = True
        self._loop.call_later(HANG_UP_S, self._kill_if_alive)

    def _kill_if_alive(self) -> None:
        if self.alive:
            self.hung_up = not self.killed
            self.kill()

    def _lost(self, death: Death) -> Lost:
        """Return how the child died, in words for the report."""
        if death is None:
            return Lost("the process that had forked it died")
        if self.hung_up:
            return Lost(
                "it closed its connection to the worker", "Do not close file descriptors that the task did not open."
            )
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
