"""A worker that is told to leave before it has begun."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.orchestration.execution.executors.nursery_client import NurseryLost
from aaiclick.orchestration.execution.starting import start_unless
from tests.support.band import band
from tests.support.crewing import ScriptedExecutor, working
from tests.support.orchestra import Orchestra

__all__ = ["band"]


class Slow(ScriptedExecutor):
    """It starts when the test says so; or fails to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.ready = asyncio.Event(), asyncio.Event()
        self.closed = False
        self.fault: Exception | None = None

    async def start(self) -> None:
        self.begun.set()
        await self.ready.wait()
        if self.fault is not None:
            raise self.fault

    async def close(self) -> None:
        self.closed = True


async def test_it_starts() -> None:
    executor = Slow()
    executor.ready.set()
    assert await start_unless(asyncio.Event(), executor)
    assert not executor.closed


async def test_told_to_leave_while_it_starts() -> None:
    executor, leaving = Slow(), asyncio.Event()
    starting = asyncio.create_task(start_unless(leaving, executor))
    await executor.begun.wait()
    leaving.set()
    assert not await starting
    assert executor.closed


async def test_a_start_that_fails_is_an_error_unless_it_leaves_anyway() -> None:
    executor, leaving = Slow(), asyncio.Event()
    executor.fault = NurseryLost(cause="no")
    executor.ready.set()
    with pytest.raises(NurseryLost):
        await start_unless(leaving, executor)
    assert executor.closed
    leaving.set()
    assert not await start_unless(leaving, executor)


async def test_a_worker_that_leaves_before_it_has_started_registers_nothing(band: Orchestra) -> None:
    executor = Slow()
    async with working(band, executor) as worker:
        await executor.begun.wait()
    assert worker.id == 0
    assert executor.closed


async def test_a_session_that_was_begun_before_is_ended(band: Orchestra) -> None:
    executor = Slow()
    begun = await band.coordinator.register(hostname="here", pid=1)
    async with working(band, executor, session=begun.id):
        await executor.begun.wait()
    assert not (await band.coordinator.beat(begun.id)).alive
