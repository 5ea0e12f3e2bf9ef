"""A worker whose bodies are functions of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any
from unittest import mock

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.heartbeat import Heartbeat
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.models import Claim, Done, Orders, Report
from tests.support.orchestra import Orchestra

Body = Callable[[Claim], Awaitable[Report]]


async def completes(claim: Claim) -> Report:
    return Done(claim.task_id, claim.epoch)


async def hangs(claim: Claim) -> Report:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


class ScriptedExecutor:
    """Runs a function of the test for every claim."""

    def __init__(self, body: Body = completes) -> None:
        self.body = body
        self.running: list[Claim] = []
        self.stopped: list[Claim] = []
        self.seen: list[Claim] = []
        self.killed = False
        self.open = False
        self.services: RunServices | None = None

    def watch(self, cutoff: Cutoff) -> None:
        self.cutoff = cutoff

    async def start(self) -> None:
        self.open = True

    async def run(self, claim: Claim, started: Started) -> Report:
        self.running.append(claim)
        self.seen.append(claim)
        started(None)
        try:
            return await self.body(claim)
        except asyncio.CancelledError:
            self.stopped.append(claim)
            raise
        finally:
            self.running.remove(claim)

    def kill(self) -> None:
        self.killed = True

    async def close(self) -> None:
        self.open = False


@asynccontextmanager
async def working(
    band: Orchestra, executor: ScriptedExecutor, *, every_s: float = 0.05, coordinator: Any = None, **options: Any
) -> AsyncIterator[TaskWorker]:
    """A worker at work, with a heart on the same loop; it is stopped at the end of the block."""
    options = {"concurrency": 4, "grace_s": 5.0, **options}
    worker = TaskWorker(coordinator or band.coordinator, executor, **options)
    hearts: list[asyncio.Task[None]] = []

    async def attend(worker: TaskWorker) -> None:
        heart = Heartbeat(
            coordinator or band.coordinator,
            worker.id,
            worker.holdings,
            partial(_obey, worker, worker.id),
            every_s=every_s,
            on_renewed=worker.cutoff.renewed,
        )
        hearts.append(asyncio.create_task(heart.beat_forever()))

    worker.on_session = attend
    running = asyncio.create_task(worker.run())
    try:
        yield worker
        worker.stop()
        async with asyncio.timeout(60):
            await running
    finally:
        for each in (*hearts, running):
            each.cancel()
        await asyncio.gather(*hearts, running, return_exceptions=True)


@contextmanager
def looks_for_work() -> Iterator[asyncio.Event]:
    """Set once a worker of this process has asked for work."""
    looked, claim = asyncio.Event(), DirectCoordinator.claim

    async def claims(self: DirectCoordinator, *args: Any, **options: Any) -> list[Claim]:
        found = await claim(self, *args, **options)
        looked.set()
        return found

    with mock.patch.object(DirectCoordinator, "claim", claims):
        yield looked


def _obey(worker: TaskWorker, session: int, orders: Orders) -> None:
    """As the service does: orders for a session that is over are for nobody."""
    if worker.id == session:
        worker.obey(orders)
