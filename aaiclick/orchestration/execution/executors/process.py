"""The executor that runs bodies in child processes: a body that breaks its process affects no other run."""

from __future__ import annotations

import asyncio
import os
from functools import partial

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.executors.log_pump import LogPump
from aaiclick.orchestration.execution.executors.nursery_client import ChildHandle, NurseryClient, NurseryLost
from aaiclick.orchestration.execution.executors.remote_runs import RemoteRuns
from aaiclick.orchestration.execution.executors.run_answers import RunAnswers
from aaiclick.orchestration.execution.executors.shared_times import SharedTimes
from aaiclick.orchestration.execution.executors.wire import RunMessage
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs.claim_inputs import narrowed
from aaiclick.orchestration.execution.runs.run_secrets import mask_passwords
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.models import Claim, Report
from aaiclick.orchestration.rules.resources import visible_devices

BIRTHS_MAX = 3
"""How often to try to fork a child before a run fails."""


class ProcessExecutor:
    """Runs bodies in up to `size` child processes, which are reused.

    `app_dir` is searched last for the user's modules. None means the current directory (`module_path.usual_place`).
    """

    def __init__(self, size: int, app_dir: str | None = None) -> None:
        self._size = size
        self._app_dir = None if app_dir is None else os.path.abspath(app_dir)
        self.services: RunServices | None = None
        self._page = SharedTimes()
        self._nursery: NurseryClient | None = None
        self._runs = RemoteRuns(lambda: self._page.kill_at)
        self._idle: list[ChildHandle] = []

    def watch(self, cutoff: Cutoff) -> None:
        """Write the cut-off to shared memory, which the nursery and the children read: this process may be paused."""
        cutoff.tell = self._page.write

    async def start(self) -> None:
        """Start the nursery and the children."""
        mask_passwords()
        self._slots = asyncio.Semaphore(self._size)
        self._starting = asyncio.Lock()
        self._pump = LogPump()
        self._idle += await asyncio.gather(*(self._fork() for _ in range(self._size)))

    async def run(self, claim: Claim, started: Started) -> Report:
        """Run one body in a child, which runs no other meanwhile."""
        async with self._slots:
            return await self._runs.run(claim, partial(self._run, claim, started))

    def kill(self) -> None:
        """Kill the runs that are being stopped, and from now on stop runs without grace."""
        self._runs.kill()

    async def close(self) -> None:
        """End the children, the nursery and the log thread."""
        self._idle.clear()
        if self._nursery is not None:
            await self._nursery.close()
            self._nursery = None
        self._pump.close()
        self._page.write(float("inf"), float("inf"))

    async def _run(self, claim: Claim, started: Started, log: RunLog) -> Report:
        flow, writing = self._pump.open(log)
        try:
            child = await self._child(fresh=visible_devices(claim.grants) is not None)
            try:
                started(log.path)
                if not claim.stop_when_cut_off:
                    child.spare()
                answer = child.begin(RunMessage(narrowed(claim), log.path), writing, RunAnswers(claim, self.services))
                return await self._runs.finish(claim, child, answer)
            finally:
                self._keep(child)
        finally:
            os.close(writing)
            self._pump.finish(flow)

    # ---------------------------------------------------------------- children

    async def _child(self, *, fresh: bool) -> ChildHandle:
        """Return an idle child, or fork one. If this is cancelled, the forked child is kept for another run.

        A run that was granted GPUs needs a `fresh` one: a library that has looked for GPUs before does not look again.
        """
        while self._idle and not fresh:
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

    async def _living_nursery(self) -> NurseryClient:
        """Return the nursery when it is ready. Start another if it has died."""
        async with self._starting:
            if self._nursery is not None and not self._nursery.alive:
                await self._nursery.close()
                self._nursery = None
            if self._nursery is None:
                self._nursery = NurseryClient(self._app_dir, self._page.fd)
            await self._nursery.until_ready()
            return self._nursery

    def _keep(self, child: ChildHandle) -> None:
        """Keep a child for the next run; kill it if it is spent."""
        if not child.alive:
            return
        if child.spent:
            child.kill()
        else:
            self._idle.append(child)

    def _keep_born(self, birth: asyncio.Future[ChildHandle]) -> None:
        if not birth.cancelled() and birth.exception() is None:
            self._keep(birth.result())
