"""A child's end of the line to its worker. Threads send one message at a time, and signals wait until it is sent."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from aaiclick.orchestration.execution.executors.child_process.child_watchdog import ChildWatchdog
from aaiclick.orchestration.execution.executors.questions import (
    Answer,
    CallbackWanted,
    Question,
    ResultWanted,
    SlotsWanted,
    TablesWanted,
)
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
"""How often a thread that waits for an answer checks whether another thread has received it, in milliseconds."""


_FROM_DATABASE = TablesWanted | SlotsWanted | CallbackWanted | ResultWanted
"""Questions whose answers the worker gets from the database."""


class ChildChannel:
    """The child's line to the worker. Between runs it waits for the next; during a run any thread may use it."""

    def __init__(self, line: socket.socket, watch: ChildWatchdog) -> None:
        self._line = line
        self._watch = watch
        self._pid = os.getpid()
        self._inbox = Inbox()
        self._fds: list[int] = []
        self._lock = threading.RLock()
        """Held while sending or receiving."""
        self._busy = False
        self._interrupted = False
        """SIGTERM arrived while a message was being sent or received, and waits for its end."""
        self._stop_asked = self._gone = False
        self._answers: dict[int, Answer] = {}
        self._running: Running | None = None

    def fileno(self) -> int:
        """Return the descriptor that is readable when the worker has sent something."""
        return self._line.fileno()

    # ---------------------------------------------------------------- between runs

    def runs(self) -> Iterator[tuple[RunMessage, int]]:
        """Yield each run with the descriptor for its output, until the worker closes the line."""
        while True:
            data, fds = receive(self._line)
            if not data:
                return
            for fd in fds:
                os.set_inheritable(fd, False)
            self._fds += fds
            for message in self._inbox.feed(data):
                if isinstance(message, RunMessage):  # a StopMessage between runs came too late, and is ignored
                    yield message, self._fds.pop(0)

    def begin(self, running: Running) -> None:
        """Begin a run: a StopMessage is for it from now on."""
        with self._lock:
            self._running = running

    def end(self) -> None:
        """End the run, and forget stops and answers that concerned it."""
        with self._lock:
            self._running = None
            self._stop_asked = self._interrupted = False
            self._answers.clear()

    def report(self, said: bytes) -> None:
        """Send the last message of a run."""
        self._line.sendall(said)

    # ---------------------------------------------------------------- while a body runs

    def ask(self, question: Question) -> Answer:
        """Send a question and return the worker's answer. Any thread may call this.

        Raises ConnectionError if the worker or the run is gone, or if the run is asked to stop while it waits for
        tables, slots, a callback or a result: the worker asks the database for these, which may be unavailable.
        """
        if os.getpid() != self._pid:
            raise ConnectionError("a process that a body forked cannot ask the worker")
        running = self._running
        if running is None:  # a thread that outlived its run
            raise ConnectionError("the run is over")
        poller = select.poll()
        poller.register(self._line, select.POLLIN)
        self.say(question)
        while self._running is running and not self._gone:
            self._listen()
            with self._lock:
                if question.serial in self._answers:
                    return self._answers.pop(question.serial)
            if self._stop_asked and isinstance(question, _FROM_DATABASE):
                break
            poller.poll(LISTEN_MS)
        raise ConnectionError("the worker is gone" if self._gone else "the run was asked to end")

    def say(self, message: Message) -> None:
        """Send a message, uninterrupted by other threads and signals."""
        with self._undisturbed():
            send(self._line, message)

    def is_stop_wanted(self) -> bool:
        """Return whether this run has to end: the worker has asked for it, is gone, or is cut off."""
        self._listen()
        return (self._stop_asked or self._gone or self._watch.is_asking()) and os.getpid() == self._pid

    def _listen(self) -> None:
        """Receive the messages that have arrived, without waiting."""
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
        """Hold the line exclusively. A SIGTERM takes effect when the outermost block ends, on the main thread.

        Yields whether this is the outermost block.
        """
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
        """Handle SIGTERM: it ends the body only if the worker wants the run to end.

        A service manager that stops the machine's services signals all processes, and the worker decides what ends.
        """
        with self._lock:
            if self._busy:  # this thread is: the lock is not free while another one is
                self._interrupted = True
                return
        self._end_if_wanted()

    def _end_if_wanted(self) -> None:
        """Raise Stopped in the body if the run has to end."""
        if self._running is not None and cancel_requested():
            raise Stopped("stopped by the worker")

    def become_copy(self) -> None:
        """Reset the lock in a process that a body forked: threads that held it do not exist there."""
        self._lock, self._busy = threading.RLock(), False
