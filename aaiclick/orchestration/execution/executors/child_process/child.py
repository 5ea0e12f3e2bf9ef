"""The main program of a child process: it runs one body after another in its main thread, and reports each."""

from __future__ import annotations

import contextvars
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import NoReturn

from aaiclick.errors import ValueTooLarge
from aaiclick.ids import forget_borrowed_ids
from aaiclick.orchestration.execution.executors.child_process.child_channel import ChildChannel
from aaiclick.orchestration.execution.executors.child_process.child_environment import Growth, Stdio
from aaiclick.orchestration.execution.executors.child_process.child_watchdog import ChildWatchdog, die_with
from aaiclick.orchestration.execution.executors.child_process.main_thread import MainThread, step
from aaiclick.orchestration.execution.executors.child_process.run_requests import RunRequests
from aaiclick.orchestration.execution.executors.shared_times import SharedTimes
from aaiclick.orchestration.execution.executors.wire import Ended, RunMessage, packed, report_bytes_max
from aaiclick.orchestration.execution.runs.current import Running, granted_environment, occupy
from aaiclick.orchestration.execution.runs.failures import failure_of
from aaiclick.orchestration.execution.runs.pipeline import Stopped, run_through
from aaiclick.orchestration.execution.runs.run_scope import fields_of, in_scope_of
from aaiclick.orchestration.execution.runs.run_secrets import mask_passwords
from aaiclick.orchestration.models import Claim, Done, Report
from aaiclick.telemetry.fields import bind_process


class Child:
    """A child process: receives runs over its line to the worker, runs them, and sends the reports."""

    def __init__(self, line: ChildChannel, watch: ChildWatchdog) -> None:
        self.line = line
        self.watch = watch
        self.pid = os.getpid()
        self.asking = RunRequests(line)
        self.stdio = Stdio()
        self.growth = Growth()

    def serve(self) -> None:
        """Perform runs until the worker closes the line."""
        for run, output in self.line.runs():
            self.perform(run, output)

    def perform(self, run: RunMessage, output: int) -> None:
        """Perform one run, and send its report. `output` is the descriptor for its standard streams."""
        self.growth.begin()
        running = Running(run.claim, log_path=run.log_path)
        running.poll = self.line.is_stop_wanted
        running.services = self.asking
        self.stdio.take(output)
        self.line.begin(running)
        occupy(running)
        granted = granted_environment()
        os.environ.update(granted)  # before the function is imported; this process runs no other body then
        if run.claim.stop_when_cut_off:
            self.watch.begin()
        try:
            report = contextvars.copy_context().run(self._report, run.claim)
        except Stopped as error:  # raised by the signal handler outside of the pipeline's own handling
            report = failure_of(run.claim, error)
        if os.getpid() != self.pid:  # the body forked, and this is the copy
            os._exit(0)
        self.line.end()
        occupy(None)
        self.watch.end()
        forget_borrowed_ids()
        self.stdio.park()
        try:
            self.line.report(_said(run.claim, report, bool(granted) or self.growth.is_too_much()))
        except OSError:  # the body closed the line, or the worker is gone: in both cases this process will be killed
            while True:
                signal.pause()

    def _report(self, claim: Claim) -> Report:
        bind_process(**fields_of(claim))
        with in_scope_of(claim):
            return step(run_through(claim, MainThread(self.line, self.asking, self.growth)))


def _said(claim: Claim, report: Report, spent: bool) -> bytes:
    """Return the last message of a run. A report larger than the worker accepts becomes a permanent failure."""
    done, failure = (report, None) if isinstance(report, Done) else (None, report)
    said, most = packed(Ended(done, failure, spent)), report_bytes_max()
    if len(said) <= most:
        return said
    error = ValueTooLarge(path="what the task made", size=len(said), limit=most, setting="AAICLICK_TASK_CHILDREN_MAX")
    return packed(Ended(None, failure_of(claim, error, permanent=True), spent))


def main(line: socket.socket, page: SharedTimes) -> NoReturn:
    """Run the child and end the process, without the exit handlers of modules that bodies have imported."""
    line.setblocking(True)
    line.set_inheritable(False)
    watch = ChildWatchdog(page)
    ours = ChildChannel(line, watch)
    served = Child(ours, watch)
    mask_passwords()  # before `serve_process`, which sends new values to the worker: it knows these already
    served.asking.serve_process()
    signal.signal(signal.SIGTERM, ours.on_sigterm)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _let_copies_end(ours.on_sigterm)
    os.register_at_fork(after_in_child=ours.become_copy)
    watch.start()
    if sys.platform != "linux":
        threading.Thread(target=die_with, args=(line,), daemon=True).start()
    with suppress(ConnectionError):  # the worker has gone
        served.serve()
    os._exit(0)


def _let_copies_end(handler: object) -> None:
    """Restore the default effect of SIGTERM in processes that a body forks: the body may want to end them.

    The signal is blocked during the fork, because Python drops signals that a new process gets before it is set up.
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
