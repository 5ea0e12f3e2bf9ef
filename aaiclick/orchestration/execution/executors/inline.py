"""The executor that runs bodies in the worker's process: for trusted code that is mostly async."""

from __future__ import annotations

import asyncio

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.executors.inline_watchdog import InlineWatchdog
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.logs.shipping import begin_shipment, sent
from aaiclick.orchestration.execution.runs import output_capture
from aaiclick.orchestration.execution.runs.current import Running, going_on
from aaiclick.orchestration.execution.runs.recording import recorded
from aaiclick.orchestration.execution.runs.run_secrets import mask_passwords
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.execution.runs.runner import run_claim
from aaiclick.orchestration.models import Claim, Report


class InlineExecutor:
    """Runs bodies in this process: coroutines in its loop, plain functions on threads.

    A thread cannot be killed. A plain function whose run is stopped is asked to end (`cancel_requested`) and then
    abandoned. If it must not go on because the worker is cut off, the whole process is ended.
    """

    def __init__(self) -> None:
        self.services: RunServices | None = None
        self._guard: InlineWatchdog | None = None

    def watch(self, cutoff: Cutoff) -> None:
        """Enforce the cut-off on another thread, since a body may block this one."""
        self._guard = InlineWatchdog(cutoff)

    async def start(self) -> None:
        """Begin to capture the output of runs, and start the watchdog."""
        mask_passwords()
        output_capture.install()
        if self._guard is not None:
            self._guard.start()

    async def run(self, claim: Claim, started: Started) -> Report:
        """Run one body to its end. Its log is created by the first output."""
        output_capture.ensure()
        log = RunLog(claim.task_id, claim.epoch, begin_shipment(claim))
        running = Running(claim, log)
        running.services = self.services
        guard = self._guard
        with going_on(running), recorded(claim, log) as record:
            if guard is not None:
                guard.begin(running)
            try:
                started(None)
                report = record.told(await run_claim(claim, interruptible=False))
            except asyncio.CancelledError:
                if guard is not None:
                    await guard.until_dead(running)
                raise
            finally:
                if guard is not None:
                    guard.end(running)
        return await sent(log, report) if log.shipment is not None else report

    def kill(self) -> None:
        """Do nothing: bodies in this process cannot be killed."""

    async def close(self) -> None:
        """Stop the watchdog and restore the standard streams."""
        if self._guard is not None:
            self._guard.close()
        output_capture.remove()
