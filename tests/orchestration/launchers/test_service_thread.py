"""The thread beside a worker: no body can hold up its heart."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.connections import coordinated
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.launchers.service_thread import Service
from aaiclick.orchestration.models import Claim, Done, Report
from aaiclick.orchestration.workers import list_workers
from tests.orchestration import sample_flows as flows
from tests.support.crewing import ScriptedExecutor
from tests.support.front_door import local, state
from tests.support.orchestra import until

__all__ = ["local", "state"]


@pytest.fixture
def frequent_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKER_HEARTBEAT_INTERVAL", "0.2")
    reset_settings()


async def test_a_body_that_blocks_the_loop_does_not_stop_the_heart(state: str, frequent_beats: None) -> None:
    """With the heart on the same loop, a healthy worker would look dead (pitfall T23)."""

    async def body(claim: Claim) -> Report:
        answered: set[float] = set()
        while len(answered) < 5:  # the test's own time limit ends it if the heart stands still
            answered.add(worker.holdings.heard_at)
            time.sleep(0.01)  # noqa: ASYNC251 (that is the point: the loop is blocked)
        return Done(claim.task_id, claim.epoch)

    made = await flows.single.submit(1)
    async with coordinated() as coordinator:
        worker = TaskWorker(coordinator, ScriptedExecutor(body), concurrency=1, max_tasks=1)
        async with asyncio.timeout(60), Service(worker, control=True):
            await worker.run()
        ended = await coordinator.job(made.id)
    assert ended is not None
    assert ended.status == "completed"
    (task,) = ended.tasks
    assert (task.lost_count, task.epoch) == (0, 1)


async def test_the_thread_ends_with_the_block(local: object) -> None:
    before = threading.active_count()
    async with coordinated() as coordinator:
        worker = TaskWorker(coordinator, ScriptedExecutor(), concurrency=1)
        async with Service(worker, control=True):
            names = [thread.name for thread in threading.enumerate()]
        assert "aaiclick-service" in names
    await until(lambda: _truth("aaiclick-service" not in [thread.name for thread in threading.enumerate()]))
    assert threading.active_count() <= before + 1  # asyncio keeps one for what blocks


async def test_asked_it_beats_at_once(local: object) -> None:
    async with coordinated() as coordinator:
        worker = TaskWorker(coordinator, ScriptedExecutor(), concurrency=1)
        async with Service(worker, control=False) as service:
            running = asyncio.create_task(worker.run())
            await until(lambda: _truth(bool(worker.id)))
            (before,) = await list_workers()

            async def has_beaten() -> bool:
                service.ask()
                (now,) = await list_workers()
                return now.last_heartbeat > before.last_heartbeat

            await until(has_beaten)
            worker.stop()
            await running


async def test_an_order_reaches_the_worker(local: object, frequent_beats: None) -> None:
    from aaiclick.orchestration.workers import drain_worker

    async with coordinated() as coordinator:
        worker = TaskWorker(coordinator, ScriptedExecutor(), concurrency=1)
        async with Service(worker, control=False):
            running = asyncio.create_task(worker.run())
            await until(lambda: _truth(bool(worker.id)))
            assert await drain_worker(worker.id)
            async with asyncio.timeout(60):
                await running
    (stopped,) = await list_workers()
    assert stopped.status == "stopped"


async def _truth(is_so: bool) -> bool:
    return is_so
