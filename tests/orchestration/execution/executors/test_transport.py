"""What runs ask is asked and answered over any transport: here over streams of the tests' own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim
from aaiclick.telemetry.masks import is_mentioned
from tests.support import asking, bodies
from tests.support.bodies import claim_of, failure_in, log_of, result_in
from tests.support.streamed import StreamExecutor


@pytest.fixture
async def executor() -> AsyncIterator[StreamExecutor]:
    executor = StreamExecutor()
    await executor.start()
    yield executor
    await executor.close()


class Services:
    """Holds tables of some tasks."""

    def __init__(self, *tasks: int) -> None:
        self.tasks = tasks
        self.asked = asyncio.Event()
        self.waits = self.gave_up = False

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        self.asked.set()
        if self.waits:
            try:
                await asyncio.Event().wait()
            finally:
                self.gave_up = True
        if claim.task_id not in self.tasks:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="hold on tables")
        return f"held {', '.join(tables)}"

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        return CacheAnswer()

    async def slots(self) -> int:
        return 5

    async def callback(self, claim: Claim, digest: str) -> str | None:
        return digest


async def test_a_body_asks_the_services_of_its_worker(executor: StreamExecutor) -> None:
    claim, other = claim_of(asking.holds), claim_of(asking.holds)
    executor.services = Services(claim.task_id)
    reports = await asyncio.gather(*(executor.run(each, lambda path: None) for each in (claim, other)))
    assert result_in(reports[0]) == "held t2_1_1"
    assert failure_in(reports[1]).error.startswith("ClaimLost: This worker no longer holds task")
    assert result_in(await executor.run(claim_of(asking.counts_slots), lambda path: None)) == 5


async def test_without_a_services_all_is_granted(executor: StreamExecutor) -> None:
    assert result_in(await executor.run(claim_of(asking.holds), lambda path: None)) == ""
    assert result_in(await executor.run(claim_of(asking.counts_slots), lambda path: None)) == 0


async def test_ids_and_masks_come_from_the_worker(executor: StreamExecutor) -> None:
    report = await executor.run(claim_of(asking.over_its_line, count=20, value="nobody-shows-this"), lambda path: None)
    assert len(set(result_in(report))) == 20
    assert is_mentioned("nobody-shows-this")
    assert log_of(report) == "***\n"


async def test_what_is_on_its_way_ends_with_the_run(executor: StreamExecutor) -> None:
    executor.services = services = Services()
    services.waits = True
    task = asyncio.create_task(executor.run(claim_of(asking.holds), lambda path: None))
    await services.asked.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    async with asyncio.timeout(60):
        while not services.gave_up:  # noqa: ASYNC110 (it is cancelled in the next turns of the loop)
            await asyncio.sleep(0)


async def test_a_connection_that_is_cut_is_a_crash(executor: StreamExecutor) -> None:
    task = asyncio.create_task(executor.run(claim_of(bodies.sleeps_async, seconds=3600.0), lambda path: None))
    await bodies.until(lambda: executor.ends and executor.ends[-1].begun)
    executor.ends[-1].cut()
    failure = failure_in(await task)
    assert failure.crashed
    assert "its connection was cut. Look at the other end." in failure.error
