"""Runs whose bodies are in other processes: time limits, stopping and reports, the same for any transport."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from aaiclick.config import settings
from aaiclick.errors import TaskCrashed, TaskTimeout
from aaiclick.orchestration.execution.executors.transport import Lost, NeverBegan, Outcome, Transport
from aaiclick.orchestration.execution.executors.wire import Ended
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.logs.shipping import begin_shipment, sent
from aaiclick.orchestration.execution.runs.failures import failure_of
from aaiclick.orchestration.execution.runs.recording import recorded
from aaiclick.orchestration.execution.timeouts import timeout_of
from aaiclick.orchestration.models import Claim, Failure, Report


class RemoteRuns:
    """The runs of one executor.

    `kill_at` returns the time of the cut-off, by the machine's monotonic clock. Grace periods end there at the latest.
    """

    def __init__(self, kill_at: Callable[[], float] = lambda: float("inf")) -> None:
        self._kill_at = kill_at
        self._stopping: set[Transport] = set()
        self._killing = False

    async def run(self, claim: Claim, work: Callable[[RunLog], Awaitable[Report]]) -> Report:
        """Return the report of a run. Its log is created before `work` begins."""
        log = RunLog(claim.task_id, claim.epoch, begin_shipment(claim))
        log.open()
        with recorded(claim, log) as record:
            report = record.told(await self._begun(claim, log, work))
        return await sent(log, report) if log.shipment is not None else report

    async def finish(self, claim: Claim, transport: Transport, answer: asyncio.Future[Outcome]) -> Report:
        """Wait for a run that has begun, and return its report. Stop it at its time limit, or if this is cancelled.

        When this returns or raises, the run is over or its process is dead.
        """
        timeout_s = timeout_of(claim)
        try:
            await asyncio.wait([answer], timeout=timeout_s)
        except asyncio.CancelledError:
            await self._stop(transport, answer)
            raise
        if not answer.done():
            await self._stop(transport, answer)
            return _timed_out(claim, timeout_s, answer.result())
        return _report(claim, transport, answer.result())

    def kill(self) -> None:
        """Kill the runs that are being stopped, and from now on stop runs without grace."""
        self._killing = True
        for transport in self._stopping:
            transport.kill()

    async def _begun(self, claim: Claim, log: RunLog, work: Callable[[RunLog], Awaitable[Report]]) -> Report:
        try:
            return await work(log)
        except asyncio.CancelledError:
            log.note("cancelled")
            raise
        except (NeverBegan, OSError) as error:  # out of processes, memory or descriptors
            return _crashed(claim, Lost(f"it never began ({error})"))

    # ---------------------------------------------------------------- stopping

    async def _stop(self, transport: Transport, answer: asyncio.Future[Outcome]) -> None:
        """Stop a run, and return when it is over. If this is cancelled meanwhile, the process is killed at once."""
        self._stopping.add(transport)
        stopping = asyncio.create_task(self._ask_then_kill(transport, answer))
        impatient = False
        while not stopping.done():
            try:
                await asyncio.shield(stopping)
            except asyncio.CancelledError:
                impatient = True
                transport.kill()
        self._stopping.discard(transport)
        if impatient:
            raise asyncio.CancelledError

    async def _ask_then_kill(self, transport: Transport, answer: asyncio.Future[Outcome]) -> None:
        left_s = max(0.0, self._kill_at() - time.monotonic())
        grace_s = 0 if self._killing else min(settings().cancel_grace_s, left_s)
        if grace_s:
            transport.ask()
            await asyncio.wait([answer], timeout=grace_s / 3)
            if not answer.done():
                transport.tell()
                await asyncio.wait([answer], timeout=grace_s * 2 / 3)
        if not answer.done():
            transport.kill()
            await asyncio.wait([answer])


# ---------------------------------------------------------------- reports


def _report(claim: Claim, transport: Transport, outcome: Outcome) -> Report:
    if isinstance(outcome, Lost):
        return _crashed(claim, outcome)
    report = outcome.report
    if report is None or (report.task_id, report.epoch) != (claim.task_id, claim.epoch):
        transport.spent = True
        return _crashed(claim, Lost("its report could not be decoded"))
    return report


def _timed_out(claim: Claim, timeout_s: float | None, outcome: Outcome) -> Failure:
    """Return the failure of a timed-out run, however the body ended, with the traceback of its end if there is one."""
    failure = failure_of(claim, TaskTimeout(timeout_s=timeout_s))
    last = outcome.failure if isinstance(outcome, Ended) else None
    return replace(failure, traceback=None if last is None else last.traceback)


def _crashed(claim: Claim, lost: Lost) -> Failure:
    failure = failure_of(claim, TaskCrashed(cause=lost.cause, hint=lost.hint))
    return replace(failure, crashed=True, traceback=None)
