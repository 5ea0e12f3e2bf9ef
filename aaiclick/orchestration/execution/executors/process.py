"""Bodies run in child processes: whatever one does to its process, the worker and the other runs go on."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import replace

from aaiclick.config import settings
from aaiclick.errors import TaskCrashed, TaskTimeout
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.desk import Desk
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.executors.forks import ChildHandle, Death, Nursery, NurseryLost
from aaiclick.orchestration.execution.executors.page import Page
from aaiclick.orchestration.execution.executors.pump import Pump
from aaiclick.orchestration.execution.executors.wire import Ended, Run
from aaiclick.orchestration.execution.failures import failure_of, tell
from aaiclick.orchestration.execution.logs import RunLog
from aaiclick.orchestration.execution.narrowing import narrowed
from aaiclick.orchestration.execution.scope import in_scope_of
from aaiclick.orchestration.execution.secrets import mask_passwords
from aaiclick.orchestration.execution.timeouts import timeout_of
from aaiclick.orchestration.models import Claim, Failure, Report

BIRTHS_MAX = 3
"""How often a child is asked for before a run is given up."""

Outcome = Ended | Death


class ProcessExecutor:
    """Runs bodies in up to `size` warm children.

    `app_dir` is where the user's modules are looked for last; the current directory if it is not given.
    """

    def __init__(self, size: int, app_dir: str | None = None) -> None:
        self._size = size
        self._app_dir = None if app_dir is None else os.path.abspath(app_dir)
        self.desk: Desk | None = None
        self._page = Page()
        self._nursery: Nursery | None = None
        self._idle: list[ChildHandle] = []
        self._stopping: set[ChildHandle] = set()
        self._killing = False

    def watch(self, cutoff: Cutoff) -> None:
        """The nursery and the children look at the page themselves: this process may be paused."""
        cutoff.tell = self._page.write

    async def start(self) -> None:
        """Start the nursery and the children."""
        mask_passwords()
        self._slots = asyncio.Semaphore(self._size)
        self._starting = asyncio.Lock()
        self._pump = Pump()
        self._idle += await asyncio.gather(*(self._fork() for _ in range(self._size)))

    async def run(self, claim: Claim, started: Started) -> Report:
        """Run one body in a child of its own for as long."""
        async with self._slots:
            log = RunLog(claim.task_id, claim.epoch)
            log.open()
            try:
                with in_scope_of(claim):
                    report = await self._run(claim, log, started)
            finally:
                log.close()
        return report if log.path is None else replace(report, log_path=log.path)

    def kill(self) -> None:
        """From now on, no grace."""
        self._killing = True
        for child in self._stopping:
            child.signal(signal.SIGKILL)

    async def close(self) -> None:
        """End the children and their nursery."""
        self._idle.clear()
        if self._nursery is not None:
            await self._nursery.close()
            self._nursery = None
        self._pump.close()
        self._page.write(float("inf"), float("inf"))

    # ---------------------------------------------------------------- one run

    async def _run(self, claim: Claim, log: RunLog, started: Started) -> Report:
        try:
            report = await self._run_in_child(claim, log, started)
        except asyncio.CancelledError:
            log.note("cancelled")
            raise
        except (NurseryLost, OSError) as error:  # out of processes, memory or descriptors
            report = _crashed(claim, f"it never began ({error})")
        tell(log, report)
        return report

    async def _run_in_child(self, claim: Claim, log: RunLog, started: Started) -> Report:
        flow, writing = self._pump.open(log)
        try:
            child = await self._child()
            try:
                started(log.path)
                if not claim.stop_when_cut_off:
                    child.spare()
                answer = child.begin(Run(narrowed(claim), log.path), writing, self.desk)
                return await self._finish(child, answer, claim)
            finally:
                self._keep(child)
        finally:
            os.close(writing)
            self._pump.finish(flow)

    async def _finish(self, child: ChildHandle, answer: asyncio.Future[Outcome], claim: Claim) -> Report:
        timeout_s = timeout_of(claim)
        try:
            await asyncio.wait([answer], timeout=timeout_s)
        except asyncio.CancelledError:
            await self._stop(child, answer)
            raise
        if not answer.done():
            await self._stop(child, answer)
            return _timed_out(claim, timeout_s, answer.result())
        return _report(claim, child, answer.result())

    # ---------------------------------------------------------------- stopping

    async def _stop(self, child: ChildHandle, answer: asyncio.Future[Outcome]) -> None:
        """Come back when the body is dead; whoever cancels this a second time has no patience."""
        self._stopping.add(child)
        stopping = asyncio.create_task(self._ask_then_kill(child, answer))
        impatient = False
        while not stopping.done():
            try:
                await asyncio.shield(stopping)
            except asyncio.CancelledError:
                impatient = True
                child.signal(signal.SIGKILL)
        self._stopping.discard(child)
        if impatient:
            raise asyncio.CancelledError

    async def _ask_then_kill(self, child: ChildHandle, answer: asyncio.Future[Outcome]) -> None:
        left_s = max(0.0, self._page.kill_at - time.monotonic())
        grace_s = 0 if self._killing else min(settings().cancel_grace_s, left_s)
        if grace_s:
            child.ask()
            await asyncio.wait([answer], timeout=grace_s / 3)
            if not answer.done():
                child.signal(signal.SIGTERM)
                await asyncio.wait([answer], timeout=grace_s * 2 / 3)
        if not answer.done():
            child.signal(signal.SIGKILL)
            await asyncio.wait([answer])

    # ---------------------------------------------------------------- children

    async def _child(self) -> ChildHandle:
        """An idle child, or a new one."""
        while self._idle:
            child = self._idle.pop()
            if child.alive and not child.spent:
                return child
        birth = asyncio.ensure_future(self._fork())
        try:
            return await asyncio.shield(birth)
        except asyncio.CancelledError:
            birth.add_done_callback(self._keep_born)
            raise

    async def _fork(self) -> ChildHandle:
        for attempt in range(1, BIRTHS_MAX + 1):
            try:
                return await (await self._living_nursery()).fork()
            except NurseryLost:
                if attempt == BIRTHS_MAX:
                    raise
        raise AssertionError("not reached")

    async def _living_nursery(self) -> Nursery:
        """The nursery, or another one if it died."""
        async with self._starting:
            if self._nursery is not None and not self._nursery.alive:
                await self._nursery.close()
                self._nursery = None
            if self._nursery is None:
                self._nursery = Nursery(self._app_dir, self._page.fd)
            await self._nursery.until_ready()
            return self._nursery

    def _keep(self, child: ChildHandle) -> None:
        """Keep a child for the next run, unless it should not or cannot run another."""
        if not child.alive:
            return
        if child.spent:
            child.signal(signal.SIGKILL)
        else:
            self._idle.append(child)

    def _keep_born(self, birth: asyncio.Future[ChildHandle]) -> None:
        if not birth.cancelled() and birth.exception() is None:
            self._keep(birth.result())


# ---------------------------------------------------------------- what a run came to


def _report(claim: Claim, child: ChildHandle, outcome: Outcome) -> Report:
    if not isinstance(outcome, Ended):
        return _crashed(claim, *_cause(child, outcome))
    report = outcome.report
    if report is None or (report.task_id, report.epoch) != (claim.task_id, claim.epoch):
        child.spent = True
        return _crashed(claim, "its report made no sense")
    return report


def _timed_out(claim: Claim, timeout_s: float | None, outcome: Outcome) -> Failure:
    """The limit counts, whatever the body did when it was asked to end; where it was then is told."""
    failure = failure_of(claim, TaskTimeout(timeout_s=timeout_s))
    last = outcome.failure if isinstance(outcome, Ended) else None
    return replace(failure, traceback=None if last is None else last.traceback)


def _crashed(claim: Claim, cause: str, hint: str = "") -> Failure:
    failure = failure_of(claim, TaskCrashed(cause=cause, hint=hint))
    return replace(failure, crashed=True, traceback=None)


def _cause(child: ChildHandle, death: Death) -> tuple[str, str]:
    """How the child died, in words."""
    if death is None:
        return "the process that had forked it died", ""
    if child.hung_up:
        return "it closed its connection to the worker", "Leave descriptors alone that are not yours."
    code = os.waitstatus_to_exitcode(death)
    if code >= 0:
        return f"exit code {code}", ""
    try:
        name = f"killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        name = f"killed by signal {-code}"
    return name, "The machine may have run out of memory." if -code == signal.SIGKILL else ""
