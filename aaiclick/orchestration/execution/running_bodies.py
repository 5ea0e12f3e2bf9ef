"""The running bodies of a worker: starts them, stops them, and stops them in time when the worker is cut off."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from aaiclick.config import settings
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Executor, Started
from aaiclick.orchestration.execution.holdings import Key
from aaiclick.orchestration.execution.runs.failures import failure_of
from aaiclick.orchestration.execution.runs.run_scope import about_run
from aaiclick.orchestration.models import Claim, Failure, Report

log = logging.getLogger("aaiclick")

STOP_S = 10.0
"""How long to wait, after the grace, for a stopped body to end."""

LOOK_S_MIN = 0.005
"""Added to the sleep until the cut-off, so that the check happens after it and not just before."""


class RunningBodies:
    """The asyncio tasks of the running bodies, one for each."""

    def __init__(self, executor: Executor, cutoff: Cutoff, slots: int) -> None:
        self.executor = executor
        self.cutoff = cutoff
        self.slots = slots
        self._running: dict[Key, asyncio.Task[Report]] = {}
        self._stopped: set[Key] = set()
        """Runs that this worker stopped; a body may also cancel itself."""
        self._watched: dict[Key, int] = {}
        """Runs that must not outlast the cut-off, with the value of `Cutoff.lapses` when each began."""

    def __len__(self) -> int:
        return len(self._running)

    @property
    def free(self) -> int:
        """The number of free slots."""
        return self.slots - len(self._running)

    def begin(self, claim: Claim, started: Started, ended: Callable[[asyncio.Task[Report]], None]) -> None:
        """Start a body; `ended` is called when it has ended."""
        key = (claim.task_id, claim.epoch)
        run = self._running[key] = asyncio.create_task(self.executor.run(claim, started))
        if claim.stop_when_cut_off:
            self._watched[key] = self.cutoff.lapses
        run.add_done_callback(ended)

    def take_report(self, claim: Claim, run: asyncio.Task[Report]) -> Report | None:
        """Remove an ended run and return its report; None if it was stopped, or failed because of a cut-off."""
        key = (claim.task_id, claim.epoch)
        stopped, cut_off = key in self._stopped, self._was_cut_off(key)
        del self._running[key]
        self._stopped.discard(key)
        if run.cancelled():
            return None if stopped or cut_off else failure_of(claim, asyncio.CancelledError())
        report: Report
        if (error := run.exception()) is not None:
            log.error("task %s: the executor failed", claim.task_id, exc_info=error, extra=about_run(claim))
            report = failure_of(claim, error)
        else:
            report = run.result()
        return None if cut_off and isinstance(report, Failure) else report

    def _was_cut_off(self, key: Key) -> bool:
        """Return whether a cut-off has happened since the run began. The child itself may have ended the body.

        A failure of such a run is not a failure of its task: it is not reported, and the claim is released.
        """
        lapses = self._watched.pop(key, None)
        return lapses is not None and (lapses != self.cutoff.lapses or self.cutoff.is_asking())

    # ------------------------------------------------------------ stopping

    def stop(self, key: Key) -> bool:
        """Stop a run. Return False if it is not running, or is being stopped already."""
        if key not in self._running or key in self._stopped:
            return False
        self._stopped.add(key)
        self._running[key].cancel()
        return True

    def stop_all(self) -> None:
        for key in list(self._running):
            self.stop(key)

    async def end_all(self, worker_id: int) -> None:
        """Stop all runs and wait for them. A run that does not end, such as an inline coroutine, is abandoned."""
        self.stop_all()
        if self._running:
            seconds = settings().cancel_grace_s + STOP_S
            _, left = await asyncio.wait(list(self._running.values()), timeout=seconds)
            if left:
                log.warning("worker %s: %d bodies did not end and are left running", worker_id, len(left))

    async def watch_forever(self, on_cut_off: Callable[[], None]) -> None:
        """At the cut-off, stop the runs that other workers may soon begin, and call `on_cut_off`.

        The time is the worker's own clock's: a worker that is cut off cannot be told.
        """
        while True:
            left_s = self.cutoff.ask_at - self.cutoff.clock.monotonic()
            often_s = self.cutoff.session_s / 60
            await self.cutoff.clock.sleep(min(left_s + LOOK_S_MIN, 10 * often_s) if left_s > 0 else often_s)
            if not self.cutoff.is_asking():
                continue
            count = sum(self.stop(key) for key in list(self._watched))
            if count:
                said = (
                    "the database has not answered for %.1f s: runs that other workers may begin soon are stopped: %d"
                )
                log.warning(said, self.cutoff.silent_s(), count)
            on_cut_off()
