"""One job, run to its end in this process by a worker that takes nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from aaiclick.orchestration.coordinator.contract import JobCoordinator
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs import output_capture
from aaiclick.orchestration.execution.runs.current import Running, going_on
from aaiclick.orchestration.execution.runs.recording import recorded
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.models import Claim, Job, Report
from aaiclick.orchestration.rules.states import ENDED_JOB

WATCH_S = 0.5
"""How often the job is looked at while nothing is reported: someone may have cancelled it."""


LEAVE_S = 10.0
"""How long the worker may take to leave."""


class HereExecutor:
    """Runs bodies where `job_test` was called: what they print goes where it always goes, and to their logs.

    Without `logs`, for whoever debugs: a prompt needs the terminal itself.
    """

    def __init__(self, run: Callable[[Claim], Awaitable[Report]], *, logs: bool = True) -> None:
        self._run, self._logs = run, logs
        self.services: RunServices | None = None
        self.fault: Exception | None = None
        """What went wrong with us, or with whoever debugs: a body's own errors are reports."""
        self.on_fault: Callable[[], None] = lambda: None

    def watch(self, cutoff: Cutoff) -> None:
        """The job is kept for this process: nobody else begins its tasks, however long it is cut off."""

    async def start(self) -> None:
        """Begin to sort what is printed by runs."""
        if self._logs:
            output_capture.install()

    async def run(self, claim: Claim, started: Started) -> Report:
        """Run one body to its end, with a log of its own."""
        log = None
        if self._logs:
            output_capture.ensure()
            log = RunLog(claim.task_id, claim.epoch)
            log.open()
        return await recorded(claim, log, partial(self._run_here, claim, log, started))

    async def _run_here(self, claim: Claim, log: RunLog | None, started: Started) -> Report:
        running = Running(claim, log, echoes=True)
        running.services = self.services
        started(None if log is None else log.path)
        with going_on(running):
            try:
                return await self._run(claim)
            except Exception as error:
                self.fault = error
                self.on_fault()
                await asyncio.Event().wait()  # no report: whoever looks at the fault ends this run
                raise

    def kill(self) -> None:
        """There is nothing to kill."""

    async def close(self) -> None:
        """Give the streams back."""
        if self._logs:
            output_capture.remove()


class JobLoop:
    """Runs one job to its end."""

    def __init__(
        self,
        coordinator: JobCoordinator,
        run: Callable[[Claim], Awaitable[Report]],
        *,
        worker_id: int,
        job_id: int,
        concurrency: int,
        seen: Callable[[Job], None],
        logs: bool = True,
    ) -> None:
        self.coordinator = coordinator
        self.executor = HereExecutor(run, logs=logs)
        self.worker = TaskWorker(
            coordinator, self.executor, concurrency=concurrency, reserved_for=worker_id, session=worker_id, grace_s=0
        )
        self.job_id = job_id
        self.seen = seen
        self._reported = asyncio.Event()
        self.worker.on_reported = self.executor.on_fault = self._reported.set

    async def until_ended(self) -> Job:
        """Run what can be run until the job has ended; gives it as it is then."""
        working = asyncio.create_task(self.worker.run())
        try:
            while True:
                self._reported.clear()
                due_s = await self.coordinator.reconcile(self.job_id)
                job = await self._look()
                if self.executor.fault is not None:
                    raise self.executor.fault
                if job.status in ENDED_JOB or not job.total_tasks:
                    return job
                if working.done():
                    working.result()
                await self._wait(working, WATCH_S if due_s is None else min(WATCH_S, due_s))
        finally:
            self.worker.stop()
            self.worker.stop()
            if not working.done():
                await asyncio.wait([working], timeout=LEAVE_S)
            working.cancel()

    async def _wait(self, working: asyncio.Task[None], seconds: float) -> None:
        reported = asyncio.ensure_future(self._reported.wait())
        try:
            with suppress(TimeoutError):
                await asyncio.wait([working, reported], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reported.cancel()

    async def _look(self) -> Job:
        job = await self.coordinator.job(self.job_id)
        assert job is not None, f"job {self.job_id} is gone"
        self.seen(job)
        return job
