"""A child process: runs one body after another, in its main thread, and says what each came to."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import itertools
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from aaiclick.data.clients.opening import borrow_only
from aaiclick.errors import ClaimLost, ValueTooLarge
from aaiclick.ids import borrow_ids, forget_borrowed_ids
from aaiclick.orchestration.execution.current import Running, cancel_requested, occupy
from aaiclick.orchestration.execution.executors.page import Page
from aaiclick.orchestration.execution.executors.surroundings import Growth, Stdio, Surroundings
from aaiclick.orchestration.execution.executors.watch import Watch, die_with
from aaiclick.orchestration.execution.executors.wire import (
    CHUNK_BYTES,
    Answer,
    Ended,
    EngineWanted,
    Ids,
    IdsWanted,
    Inbox,
    Message,
    Question,
    Run,
    SecretsFound,
    Slots,
    SlotsWanted,
    Stop,
    TablesHeld,
    TablesWanted,
    packed,
    receive,
    report_bytes_max,
    send,
)
from aaiclick.orchestration.execution.failures import failure_of
from aaiclick.orchestration.execution.run_data import (
    RunData,
    holds_data,
    is_heavy,
    refers_to_objects,
    wanting_objects,
    with_data,
)
from aaiclick.orchestration.execution.runner import prepare
from aaiclick.orchestration.execution.scope import fields_of, in_scope_of
from aaiclick.orchestration.execution.secrets import mask_passwords
from aaiclick.orchestration.execution.staging import completed, new_staging
from aaiclick.orchestration.gathering import Staging, staged_in
from aaiclick.orchestration.models import Claim, Done, Failure, Report
from aaiclick.orchestration.rules.entrypoints import arguments_from_outside, has_outside_arguments
from aaiclick.telemetry import masks
from aaiclick.telemetry.fields import bind_process

LISTEN_MS = 20
"""How soon whoever waits for an answer looks whether another thread has heard it."""


class Stopped(SystemExit):
    """The worker wants this run to end: raised in the body, so that its `finally` blocks run."""


class Child:
    """The child's side: a line to the worker, and the run that is going on."""

    def __init__(self, line: socket.socket, page: Page) -> None:
        self.line = line
        self.watch = Watch(page)
        self.pid = os.getpid()
        self.inbox = Inbox()
        self.fds: list[int] = []
        self.lock = threading.RLock()
        """Whoever speaks or listens has it."""
        self.busy = False
        self.interrupted = False
        """SIGTERM came while this was busy with the line: a message must not be torn."""
        self.stop_asked = self.gone = False
        self.serials = itertools.count(1)
        self.answers: dict[int, Answer] = {}
        self.running: Running | None = None
        self.called = False
        """Whether the body has begun."""
        self.stdio = Stdio()
        self.growth = Growth()

    def serve(self) -> None:
        """Run what comes, until the worker hangs up."""
        while True:
            data, fds = receive(self.line)
            if not data:
                return
            for fd in fds:
                os.set_inheritable(fd, False)
            self.fds += fds
            for message in self.inbox.feed(data):
                if isinstance(message, Run):  # a Stop that comes between runs came too late
                    self.perform(message)

    def perform(self, run: Run) -> None:
        """One run, from its message to its report."""
        self.growth.begin()
        running = Running(run.claim, log_path=run.log_path)
        running.poll = self.is_stop_wanted
        running.desk = self
        self.stdio.take(self.fds.pop(0))
        with self.lock:
            self.running = running
        occupy(running)
        if run.claim.stop_when_cut_off:
            self.watch.begin()
        try:
            report = contextvars.copy_context().run(self._report, run.claim)
        except Stopped as error:  # between the body and us
            report = failure_of(run.claim, error)
        if os.getpid() != self.pid:  # the body forked, and this is the copy
            os._exit(0)
        with self.lock:
            self.running = None
            self.stop_asked = self.interrupted = False
            self.answers.clear()
        occupy(None)
        self.watch.end()
        forget_borrowed_ids()
        self.stdio.park()
        try:
            self.line.sendall(_said(run.claim, report, self.growth.is_too_much()))
        except OSError:  # the body closed what is not its own, or the worker is gone: either way we are killed
            while True:
                signal.pause()

    def _report(self, claim: Claim) -> Report:
        data, outside = RunData(claim), has_outside_arguments(claim.entrypoint)
        bind_process(**fields_of(claim))
        with arguments_from_outside(outside), in_scope_of(claim), closing(asyncio.Runner()) as runner:
            return data.sign(self._outcome(claim, data, runner))  # one loop for all of a run, when it is needed

    def _outcome(self, claim: Claim, data: RunData, runner: asyncio.Runner) -> Report:
        try:
            opened = runner.run(data.open_arguments()) if refers_to_objects(claim) else {}
        except BaseException as error:
            return _failed(claim, error)
        try:
            function, kwargs = prepare(claim, opened)
        except BaseException as error:  # an import is the user's code: it may raise anything
            return failure_of(claim, error, permanent=not isinstance(error, Stopped))
        surroundings = Surroundings()
        self.growth.imported()
        staging = new_staging(claim)
        self.called = True
        try:
            with staged_in(staging), closing(runner):  # what a body leaves in its loop ends with it
                return self._call(claim, function, kwargs, data, staging, runner)
        except BaseException as error:  # whatever a body raises is its report
            return _failed(claim, error)
        finally:
            self.called = False
            if os.getpid() == self.pid:
                surroundings.restore()

    def _call(
        self,
        claim: Claim,
        function: Callable[..., Any],
        kwargs: dict[str, Any],
        data: RunData,
        staging: Staging,
        runner: asyncio.Runner,
    ) -> Report:
        """Call it, and say what it returned; what takes no event loop gets none."""
        if inspect.iscoroutinefunction(function) or data.is_open or wanting_objects(function):
            return _run(runner, self._await(lambda: _with_data(claim, function, kwargs, data, staging)))
        returned = function(**kwargs)
        if inspect.isawaitable(returned) or holds_data(returned):
            return _run(runner, self._await(lambda: _with_data(claim, lambda: returned, {}, data, staging)))
        report = completed(claim, returned, staging)
        return _run(runner, self._await(lambda: _lightened(report, data))) if is_heavy(report) else report

    async def _await(self, begin: Callable[[], Awaitable[Report]]) -> Report:
        """The coroutine's result; it is cancelled when the worker asks."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def look() -> None:
            if cancel_requested():
                loop.remove_reader(self.line)
                task.cancel()

        loop.add_reader(self.line, look)
        try:
            return await begin()
        finally:
            loop.remove_reader(self.line)

    # ---------------------------------------------------------------- the line, while a body runs

    def want_engine(self) -> None:
        """Ask the worker to have the embedded engine served."""
        self.say(EngineWanted())

    def want_ids(self, count: int) -> list[int]:
        """Ids from the worker: two children that made them themselves could make the same."""
        answer = self.ask(IdsWanted(next(self.serials), count))
        assert isinstance(answer, Ids)
        return answer.ids

    def want_masks(self, values: list[str]) -> None:
        """Ask the worker to mask values in the log before anything is done with them."""
        self.ask(SecretsFound(next(self.serials), values))

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """Ask the worker to hold tables for the run; on a thread once there is a body, so that its loop goes on."""
        wanted = TablesWanted(next(self.serials), list(tables))
        answer = await asyncio.to_thread(self.ask, wanted) if self.called else self.ask(wanted)
        assert isinstance(answer, TablesHeld)
        if answer.refusal:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="hold on tables")
        return answer.installation

    async def slots(self) -> int:
        """Ask the worker how many bodies run at a time, in all workers."""
        answer = await asyncio.to_thread(self.ask, SlotsWanted(next(self.serials)))
        assert isinstance(answer, Slots)
        return answer.count

    def ask(self, question: Question) -> Answer:
        """What the worker answers. Any thread may ask; a Stop that comes meanwhile is remembered.

        What takes a while is not waited for once the run is to end: the state may be away.
        """
        if os.getpid() != self.pid:
            raise ConnectionError("a process that a body forked cannot ask the worker")
        running = self.running
        poller = select.poll()
        poller.register(self.line, select.POLLIN)
        self.say(question)
        while self.running is running and not self.gone:
            self.listen()
            with self.lock:
                if question.serial in self.answers:
                    return self.answers.pop(question.serial)
            if self.stop_asked and isinstance(question, TablesWanted | SlotsWanted):
                break
            poller.poll(LISTEN_MS)
        raise ConnectionError("the worker is gone" if self.gone else "the run is to end")

    def say(self, message: Message) -> None:
        """Send a message in one piece."""
        with self.undisturbed():
            send(self.line, message)

    def listen(self) -> None:
        """Take in what the worker has said, without waiting for more."""
        with self.undisturbed() as first:
            if not first or self.running is None or os.getpid() != self.pid:
                return
            try:
                data = self.line.recv(CHUNK_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            self.gone = self.gone or not data
            for message in self.inbox.feed(data):
                if isinstance(message, Stop):
                    self.stop_asked = True
                elif isinstance(message, Answer):
                    self.answers[message.serial] = message

    @contextmanager
    def undisturbed(self) -> Iterator[bool]:
        """Alone on the line; a SIGTERM takes effect when the outermost of these ends. Gives whether this is it."""
        with self.lock:
            first, self.busy = not self.busy, True
            try:
                yield first
            finally:
                self.busy = not first
        if first and self.interrupted and threading.current_thread() is threading.main_thread():
            self.interrupted = False
            self.end_if_wanted()

    def is_stop_wanted(self) -> bool:
        """Whether the worker has asked to end this run; also when it is gone."""
        self.listen()
        return (self.stop_asked or self.gone or self.watch.is_asking()) and os.getpid() == self.pid

    def on_sigterm(self, number: int, frame: FrameType | None) -> None:
        """Only the worker's own: whoever stops the machine's services signals everyone, and lets the worker decide."""
        with self.lock:
            if self.busy:  # we ourselves are: another thread would not have left us the lock
                self.interrupted = True
                return
        self.end_if_wanted()

    def end_if_wanted(self) -> None:
        """End the body if it was the worker who sent the signal."""
        if self.running is not None and cancel_requested():
            raise Stopped("stopped by the worker")

    def become_copy(self) -> None:
        """In a process that a body forked: the line is not its own, and its threads are gone."""
        self.lock, self.busy = threading.RLock(), False


def _said(claim: Claim, report: Report, spent: bool) -> bytes:
    """The last message of a run; a report that would be too much for the worker becomes a failure."""
    done, failure = (report, None) if isinstance(report, Done) else (None, report)
    said, most = packed(Ended(done, failure, spent)), report_bytes_max()
    if len(said) <= most:
        return said
    error = ValueTooLarge(path="what the task made", size=len(said), limit=most, setting="AAICLICK_TASK_CHILDREN_MAX")
    return packed(Ended(None, failure_of(claim, error, permanent=True), spent))


def _run(runner: asyncio.Runner, call: Coroutine[Any, Any, Report]) -> Report:
    """In the surroundings of now: the loop may be older."""
    return runner.run(call, context=contextvars.copy_context())


async def _with_data(
    claim: Claim, function: Callable[..., Any], kwargs: dict[str, Any], data: RunData, staging: Staging
) -> Report:
    """The body with its Objects: opened, converted, and given back when it is over."""

    async def body() -> object:
        returned = function(**await data.convert(function, kwargs))
        return await returned if inspect.isawaitable(returned) else returned

    try:
        return data.hand_on(await data.lighten(completed(claim, await with_data(data, body), staging)))
    finally:
        await data.end()


async def _lightened(report: Report, data: RunData) -> Report:
    try:
        return data.hand_on(await data.lighten(report))
    finally:
        await data.end()


def _failed(claim: Claim, error: BaseException) -> Failure:
    try:
        return failure_of(claim, error)
    except Stopped as second:  # while the error was asked what it is
        return failure_of(claim, second)


def main(line: socket.socket, page: Page) -> NoReturn:
    """The life of a child; it ends without the exit handlers of whatever the bodies imported."""
    line.setblocking(True)
    line.set_inheritable(False)
    served = Child(line, page)
    borrow_only(served.want_engine)
    borrow_ids(served.want_ids)
    mask_passwords()
    masks.tell_new_ones(served.want_masks)
    signal.signal(signal.SIGTERM, served.on_sigterm)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _let_copies_end(served.on_sigterm)
    os.register_at_fork(after_in_child=served.become_copy)
    served.watch.start()
    if sys.platform != "linux":
        threading.Thread(target=die_with, args=(line,), daemon=True).start()
    with suppress(ConnectionError):  # the worker is gone
        served.serve()
    os._exit(0)


def _let_copies_end(handler: object) -> None:
    """In a process that a body forks, SIGTERM has its usual effect: whoever forked it may want to end it.

    It is held back meanwhile: Python forgets what a new process was sent before it was ready.
    """
    held = threading.local()

    def hold() -> None:
        held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def release() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, held.mask)

    def reset() -> None:
        if signal.getsignal(signal.SIGTERM) == handler:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        release()

    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=reset)
