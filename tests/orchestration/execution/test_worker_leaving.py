"""How a worker leaves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.config import settings
from aaiclick.orchestration.execution import running_bodies as module
from aaiclick.orchestration.models import Claim, Orders, Report
from aaiclick.orchestration.store.tables import workers
from tests.support.band import band
from tests.support.crewing import ScriptedExecutor, completes, hangs, working
from tests.support.orchestra import Orchestra, make, until

__all__ = ["band"]


async def test_runs_that_outlast_the_grace_are_given_back_and_cost_nothing(band: Orchestra) -> None:
    executor = ScriptedExecutor(hangs)
    job = await band.submit(make("a"))
    async with working(band, executor, grace_s=0.05):
        await until(lambda: _truth(bool(executor.running)))
    assert len(executor.stopped) == 1
    task = await band.task(executor.seen[0])
    assert (task.status, task.attempt, task.lost_count, task.crash_count) == ("pending", 0, 0, 0)
    assert await band.ready_names() == ["a"]
    assert (await band.job(job)).status == "running"
    assert await band.violations() == []


async def test_asked_twice_it_leaves_at_once(band: Orchestra) -> None:
    executor = ScriptedExecutor(hangs)
    await band.submit(make("a"))
    async with working(band, executor, grace_s=3600) as worker:
        await until(lambda: _truth(bool(executor.running)))
        worker.stop()
        worker.stop()
    assert executor.killed
    assert await band.ready_names() == ["a"]


@pytest.mark.parametrize("session_is_lost", [False, True])
async def test_a_body_that_does_not_end_is_left_behind(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, session_is_lost: bool
) -> None:
    """As an inline coroutine that ignores its cancellation."""
    monkeypatch.setattr(module, "STOP_S", -settings().cancel_grace_s)
    enough = asyncio.Event()

    async def body(claim: Claim) -> Report:
        while not enough.is_set():
            with suppress(asyncio.CancelledError):
                await enough.wait()
        return await completes(claim)

    job = await band.submit(make("a"))
    async with working(band, ScriptedExecutor(body), grace_s=0.0) as worker:
        await until(lambda: _truth(len(worker.holdings) == 1))
        old = worker.id
        if session_is_lost:
            worker.obey(Orders(alive=False))
            await until(lambda: _truth(worker.id not in (0, old)))
    enough.set()
    assert await band.statuses(job) == {"a": "claimed" if session_is_lost else "pending"}


async def test_results_of_the_grace_are_told_before_it_leaves(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        await asyncio.sleep(0.05)
        return await completes(claim)

    executor = ScriptedExecutor(body)
    job = await band.submit(make("a"))
    async with working(band, executor):
        await until(lambda: _truth(bool(executor.running)))
    assert (await band.job(job)).status == "completed"


async def test_what_a_heartbeat_under_way_counts_is_not_counted_again(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, left = asyncio.Event(), asyncio.Event()
    beat = band.coordinator.beat

    async def slow(*given: Any, **more: Any) -> Orders:
        orders = await beat(*given, **more)
        if more["completed"] and not counted.is_set():
            counted.set()
            await left.wait()
        return orders

    monkeypatch.setattr(band.coordinator, "beat", slow)
    await band.submit(make("a"))
    executor = ScriptedExecutor()
    async with working(band, executor, every_s=0.01) as worker:
        await counted.wait()
        worker.stop()
        await until(lambda: _truth(not executor.open))
        left.set()
    assert await band.scalar(select(workers.c.tasks_completed).where(workers.c.id == worker.id)) == 1


async def test_a_session_that_is_lost_while_leaving_kills_its_runs_too(band: Orchestra) -> None:
    """Others have them by now: the grace is for what is still its own."""
    executor = ScriptedExecutor(hangs)
    await band.submit(make("a"))
    async with working(band, executor, every_s=3600, grace_s=3600) as worker:
        await until(lambda: _truth(bool(executor.running)))
        worker.stop()
        worker.obey(Orders(alive=False))
        await until(lambda: _truth(bool(executor.stopped)))
        await until(lambda: _truth(not executor.open))


async def _truth(is_so: bool) -> bool:
    return is_so
