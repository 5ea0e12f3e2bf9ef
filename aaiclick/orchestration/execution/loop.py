"""Claim, run, report, until there is nothing left to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import settings
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.failures import failure_of
from aaiclick.orchestration.models import Claim, Job, Report
from aaiclick.orchestration.rules.states import ENDED_JOB

POLL_S_MIN, POLL_S_MAX = 0.01, 0.5
"""How often an idle loop looks for work: less and less often while there is none."""

WATCH_S = 0.5
"""How often the job is looked at while bodies run: someone may have cancelled it, something may have come due."""


@dataclass(slots=True)
class JobLoop:
    """Runs one job to its end in this process."""

    coordinator: Coordinator
    worker_id: int
    job_id: int
    run: Callable[[Claim], Awaitable[Report]]
    placement: int
    concurrency: int
    seen: Callable[[Job], None]
    clock: Clock = SYSTEM_CLOCK
    _running: dict[asyncio.Task[Report], Claim] = field(default_factory=dict)
    _watched_at: float = float("-inf")

    async def until_ended(self) -> Job:
        """Run what can be run until the job has ended; gives it as it is then."""
        beats = asyncio.create_task(self._beat())
        try:
            return await self._loop()
        finally:
            beats.cancel()
            await asyncio.gather(beats, return_exceptions=True)
            await self._abandon()

    async def _loop(self) -> Job:
        pause_s = POLL_S_MIN
        while True:
            await self._claim()
            if self._running:
                pause_s = POLL_S_MIN
                await self._report(await self._wait())
                await self._watch()
                continue
            due_s = await self.coordinator.reconcile(self.job_id)
            job = await self._look()
            if job.status in ENDED_JOB or not job.total_tasks:
                return job
            if due_s == 0:
                continue
            await self.clock.sleep(min(pause_s, due_s or pause_s))
            pause_s = min(pause_s * 2, POLL_S_MAX)

    async def _claim(self) -> None:
        free = self.concurrency - len(self._running)
        if free <= 0:
            return
        for claim in await self.coordinator.claim(self.worker_id, limit=free, placement=self.placement):
            self._running[asyncio.create_task(self._run(claim))] = claim

    async def _run(self, claim: Claim) -> Report:
        return await self.run(claim)

    async def _wait(self) -> set[asyncio.Task[Report]]:
        """Wait for a body to end, but not for long: another may have become ready."""
        done, _ = await asyncio.wait(self._running, timeout=WATCH_S, return_when=asyncio.FIRST_COMPLETED)
        return done

    async def _watch(self) -> None:
        """Now and then, promote what is due and notice when the job has ended."""
        if self.clock.monotonic() - self._watched_at < WATCH_S:
            return
        self._watched_at = self.clock.monotonic()
        await self.coordinator.reconcile(self.job_id)
        if (await self._look()).status in ENDED_JOB:
            await self._abandon()

    async def _report(self, done: set[asyncio.Task[Report]]) -> None:
        """A report that is refused came too late: the task was cancelled or cleared meanwhile."""
        if done:
            reports = [_outcome(task, self._running.pop(task)) for task in done]
            await self.coordinator.report(self.worker_id, reports)
            await self._look()

    async def _look(self) -> Job:
        job = await self.coordinator.job(self.job_id)
        assert job is not None, f"job {self.job_id} is gone"
        self.seen(job)
        return job

    async def _beat(self) -> None:
        while True:
            await self.clock.sleep(settings().beat_every_s)
            await self.coordinator.beat(self.worker_id)

    async def _abandon(self) -> None:
        """Stop the bodies that are still running: nobody wants their results."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()


def _outcome(task: asyncio.Task[Report], claim: Claim) -> Report:
    """What a run came to; a body that cancelled itself failed."""
    return failure_of(claim, asyncio.CancelledError()) if task.cancelled() else task.result()
