"""Runs one job to its end in this process, with a worker that claims no other tasks. `job_test` uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aaiclick.orchestration.coordinator.contract import JobCoordinator
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.logs.shipping import begin_shipment, sent
from aaiclick.orchestration.execution.runs import output_capture
from aaiclick.orchestration.execution.runs.current import Running, going_on
from aaiclick.orchestration.execution.runs.recording import recorded
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.models import Claim, Job, Report
from aaiclick.orchestration.rules.states import ENDED_JOB

WATCH_S = 0.5
"""How often the job is read while no run is reported: it may have been cancelled."""


LEAVE_S = 10.0
"""How long to wait for the worker to stop."""


class HereExecutor:
    """Runs bodies in the process that called `job_test`. Their output goes to the terminal and to the logs of the runs.

    With `logs=False` nothing is captured: a debugger's prompt needs the terminal itself.
    """

    def __init__(self, run: Callable[[Claim], Awaitable[Report]], *, logs: bool = True) -> None:
        self._run, self._logs = run, logs
        self.services: RunServices | None = None
        self.fault: Exception | None = None
        """An error of the runner, or of the debugger. Errors of a body become reports instead."""
        self.on_fault: Callable[[], None] = lambda: None

    def watch(self, cutoff: Cutoff) -> None:
        """Do nothing: the job is reserved for this process, so no other starts its tasks, even if it is cut off."""

    async def start(self) -> None:
        """Begin to capture the output of runs, if there are logs."""
        if self._logs:
            output_capture.install()

    async def run(self, claim: Claim, started: Started) -> Report:
        """Run one body to its end, with a log of its own if there are logs."""
        log = None
        if self._logs:
            output_capture.ensure()
            log = RunLog(claim.task_id, claim.epoch, begin_shipment(claim))
            log.open()
        with recorded(claim, log) as record:
            report = record.told(await self._run_here(claim, log, started))
        return await sent(log, report) if log is not None and log.shipment is not None else report

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
                await asyncio.Event().wait()  # no report: `JobLoop` sees the fault and cancels this run
                raise

    def kill(self) -> None:
        """Do nothing: bodies in this process cannot be killed."""

    async def close(self) -> None:
        """Restore the standard streams."""
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
        """Run the job's tasks until it has ended, and return the ended job.

        Raises the executor's fault, or the error that ended the worker.
        """
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
