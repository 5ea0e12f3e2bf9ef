"""A child's end of its line to the worker: messages in one piece, whoever sends them, and signals between them."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from aaiclick.orchestration.execution.executors.child_process.child_watchdog import ChildWatchdog
from aaiclick.orchestration.execution.executors.questions import Answer, Question, SlotsWanted, TablesWanted
from aaiclick.orchestration.execution.executors.wire import (
    CHUNK_BYTES,
    Inbox,
    Message,
    RunMessage,
    StopMessage,
    receive,
    send,
)
from aaiclick.orchestration.execution.runs.current import Running, cancel_requested
from aaiclick.orchestration.execution.runs.pipeline import Stopped

LISTEN_MS = 20
"""How soon whoever waits for an answer looks whether another thread has heard it."""


class ChildChannel:
    """Between runs it waits for the next one; while a body runs, any thread may speak and listen."""

    def __init__(self, line: socket.socket, watch: ChildWatchdog) -> None:
        self._line = line
        self._watch = watch
        self._pid = os.getpid()
        self._inbox = Inbox()
        self._fds: list[int] = []
        self._lock = threading.RLock()
        """Whoever speaks or listens has it."""
        self._busy = False
        self._interrupted = False
        """SIGTERM came while this was busy: a message must not be torn."""
        self._stop_asked = self._gone = False
        self._answers: dict[int, Answer] = {}
        self._running: Running | None = None

    def fileno(self) -> int:
        """Return what can be read when the worker has said something."""
        return self._line.fileno()

    # ---------------------------------------------------------------- between runs

    def runs(self) -> Iterator[tuple[RunMessage, int]]:
        """Each run that comes, with the descriptor for its output, until the worker hangs up."""
        while True:
            data, fds = receive(self._line)
            if not data:
                return
            for fd in fds:
                os.set_inheritable(fd, False)
            self._fds += fds
            for message in self._inbox.feed(data):
                if isinstance(message, RunMessage):  # a Stop that comes between runs came too late
                    yield message, self._fds.pop(0)

    def begin(self, running: Running) -> None:
        """A run begins: from now on a Stop is for it."""
        with self._lock:
            self._running = running

    def end(self) -> None:
        """The run is over, and what was said about it too."""
        with self._lock:
            self._running = None
            self._stop_asked = self._interrupted = False
            self._answers.clear()

    def report(self, said: bytes) -> None:
        """Send the last message of a run."""
        self._line.sendall(said)

    # ---------------------------------------------------------------- while a body runs

    def ask(self, question: Question) -> Answer:
        """Return what the worker answers. Any thread may ask; a Stop that comes meanwhile is remembered.

        What takes a while is not waited for once the run is to end: the state may be away.
        """
        if os.getpid() != self._pid:
            raise ConnectionError("a process that a body forked cannot ask the worker")
        running = self._running
        if running is None:  # a thread that a run has left
            raise ConnectionError("the run is over")
        poller = select.poll()
        poller.register(self._line, select.POLLIN)
        self.say(question)
        while self._running is running and not self._gone:
            self._listen()
            with self._lock:
                if question.serial in self._answers:
                    return self._answers.pop(question.serial)
            if self._stop_asked and isinstance(question, TablesWanted | SlotsWanted):
                break
            poller.poll(LISTEN_MS)
        raise ConnectionError("the worker is gone" if self._gone else "the run is to end")

    def say(self, message: Message) -> None:
        """Send a message in one piece."""
        with self._undisturbed():
            send(self._line, message)

    def is_stop_wanted(self) -> bool:
        """Whether the worker has asked to end this run; also when it is gone."""
        self._listen()
        return (self._stop_asked or self._gone or self._watch.is_asking()) and os.getpid() == self._pid

    def _listen(self) -> None:
        """Take in what the worker has said, without waiting for more."""
        with self._undisturbed() as first:
            if not first or self._running is None or os.getpid() != self._pid:
                return
            try:
                data = self._line.recv(CHUNK_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            self._gone = self._gone or not data
            for message in self._inbox.feed(data):
                if isinstance(message, StopMessage):
                    self._stop_asked = True
                elif isinstance(message, Answer):
                    self._answers[message.serial] = message

    # ---------------------------------------------------------------- signals

    @contextmanager
    def _undisturbed(self) -> Iterator[bool]:
        """Alone on the line; a SIGTERM takes effect when the outermost of these ends. Gives whether this is it."""
        with self._lock:
            first, self._busy = not self._busy, True
            try:
                yield first
            finally:
                self._busy = not first
        if first and self._interrupted and threading.current_thread() is threading.main_thread():
            self._interrupted = False
            self._end_if_wanted()

    def on_sigterm(self, number: int, frame: FrameType | None) -> None:
        """Only the worker's own: whoever stops the machine's services signals everyone, and lets the worker decide."""
        with self._lock:
            if self._busy:  # we ourselves are: another thread would not have left us the lock
                self._interrupted = True
                return
        self._end_if_wanted()

    def _end_if_wanted(self) -> None:
        """End the body if it was the worker who sent the signal."""
        if self._running is not None and cancel_requested():
            raise Stopped("stopped by the worker")

    def become_copy(self) -> None:
        """In a process that a body forked: the line is not its own, and its threads are gone."""
        self._lock, self._busy = threading.RLock(), False
