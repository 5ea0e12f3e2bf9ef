"""The reply to a claim is lost after its commit: the heartbeat's list tells, and the tasks are given back (T22)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.execution.heartbeat import Heartbeat
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.models import Claim
from tests.support.crewing import ScriptedExecutor
from tests.support.fleet import Fleet, fleet

__all__ = ["fleet"]

LOST = 3


class Forgetful(DirectCoordinator):
    """Claims, and loses the first answers."""

    lost: list[Claim]

    async def claim(self, worker_id: int, **options: Any) -> list[Claim]:
        claims = await super().claim(worker_id, **options)
        if claims and len(self.lost) < LOST:
            self.lost += claims
            raise ConnectionError("the reply was lost")
        return claims


@asynccontextmanager
async def _at_work(worker: TaskWorker) -> AsyncIterator[None]:
    hearts: list[asyncio.Task[None]] = []

    async def attend(worker: TaskWorker) -> None:
        heart = Heartbeat(worker.coordinator, worker.id, worker.holdings, worker.obey, every_s=0.2)
        hearts.append(asyncio.create_task(heart.beat_forever()))

    worker.on_session = attend
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running
        for heart in hearts:
            heart.cancel()
        await asyncio.gather(*hearts, return_exceptions=True)


async def test_tasks_whose_claim_was_not_heard_of_are_given_back(fleet: Fleet) -> None:
    coordinator = Forgetful(fleet.database)
    coordinator.lost = []
    tasks = fleet.quick(LOST + 3)
    job = await fleet.submit(*tasks)
    async with _at_work(TaskWorker(coordinator, ScriptedExecutor(), concurrency=1)):
        assert (await fleet.end_of(job)).status == "completed"
    assert len(coordinator.lost) == LOST
    rows = (await fleet.tasks(job)).values()
    assert {(row.lost_count, row.crash_count, row.attempt) for row in rows} == {(0, 0, 0)}
    outcomes = [await fleet.outcomes(task) for task in tasks]
    assert sum(each.count("released") for each in outcomes) == LOST
    assert all(each[-1] == "completed" and each.count("completed") == 1 for each in outcomes)
