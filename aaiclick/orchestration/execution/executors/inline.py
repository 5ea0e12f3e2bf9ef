"""Bodies run in the worker itself: for code that is trusted, and mostly async."""

from __future__ import annotations

import asyncio
from functools import partial

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.executors.inline_watchdog import InlineWatchdog
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs import output_capture
from aaiclick.orchestration.execution.runs.current import Running, going_on
from aaiclick.orchestration.execution.runs.recording import recorded
from aaiclick.orchestration.execution.runs.run_secrets import mask_passwords
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.execution.runs.runner import run_claim
from aaiclick.orchestration.models import Claim, Report


class InlineExecutor:
    """Runs bodies in this process: coroutines in its loop, plain functions on threads.

    A thread cannot be killed: a plain function whose run is stopped is asked (`cancel_requested`), and abandoned; if it
    must not go on, since the worker is cut off, the whole process ends.
    """

    def __init__(self) -> None:
        self.services: RunServices | None = None
        self._guard: InlineWatchdog | None = None

    def watch(self, cutoff: Cutoff) -> None:
        """On a thread of its own: a body may hold up this one."""
        self._guard = InlineWatchdog(cutoff)

    async def start(self) -> None:
        """Begin to sort what is printed by runs."""
        mask_passwords()
        output_capture.install()
        if self._guard is not None:
            self._guard.start()

    async def run(self, claim: Claim, started: Started) -> Report:
        """Run one body to its end; its log is made by the first thing that it prints."""
        output_capture.ensure()
        log = RunLog(claim.task_id, claim.epoch)
        running = Running(claim, log)
        running.services = self.services
        with going_on(running):
            return await recorded(claim, log, partial(self._run, running, started))

    async def _run(self, running: Running, started: Started) -> Report:
        guard = self._guard
        if guard is not None:
            guard.begin(running)
        try:
            started(None)
            return await run_claim(running.claim, interruptible=False)
        except asyncio.CancelledError:
            if guard is not None:
                await guard.until_dead(running)
            raise
        finally:
            if guard is not None:
                guard.end(running)

    def kill(self) -> None:
        """There is nothing to kill."""

    async def close(self) -> None:
        """Give the streams back."""
        if self._guard is not None:
            self._guard.close()
        output_capture.remove()
