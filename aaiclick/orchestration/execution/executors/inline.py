"""Bodies run in the worker itself: for code that is trusted, and mostly async."""

from __future__ import annotations

import asyncio
from functools import partial

from aaiclick.orchestration.execution import capture
from aaiclick.orchestration.execution.current import Running, going_on
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.desk import Desk
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.executors.guard import Guard
from aaiclick.orchestration.execution.logs import RunLog
from aaiclick.orchestration.execution.recording import recorded
from aaiclick.orchestration.execution.runner import run_claim
from aaiclick.orchestration.execution.secrets import mask_passwords
from aaiclick.orchestration.models import Claim, Report


class InlineExecutor:
    """Runs bodies in this process: coroutines in its loop, plain functions on threads.

    A thread cannot be killed: a plain function whose run is stopped is asked (`cancel_requested`), and abandoned; if it
    must not go on, since the worker is cut off, the whole process ends.
    """

    def __init__(self) -> None:
        self.desk: Desk | None = None
        self._guard: Guard | None = None

    def watch(self, cutoff: Cutoff) -> None:
        """On a thread of its own: a body may hold up this one."""
        self._guard = Guard(cutoff)

    async def start(self) -> None:
        """Begin to sort what is printed by runs."""
        mask_passwords()
        capture.install()
        if self._guard is not None:
            self._guard.start()

    async def run(self, claim: Claim, started: Started) -> Report:
        """Run one body to its end; its log is made by the first thing that it prints."""
        capture.ensure()
        log = RunLog(claim.task_id, claim.epoch)
        running = Running(claim, log)
        running.desk = self.desk
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
        capture.remove()
