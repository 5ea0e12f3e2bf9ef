"""A worker says when the bodies are dead that used tables: with their reports, or without."""

from __future__ import annotations

import asyncio

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.models import Claim, Orders, Report, Stop
from tests.orchestration.execution.test_worker import ended
from tests.support.band import band
from tests.support.crewing import ScriptedExecutor, completes, working
from tests.support.orchestra import Orchestra, done, make, until
from tests.support.tables import drop, hold, references_left, returned, run_refs, table_of

__all__ = ["band"]


class Holding(ScriptedExecutor):
    """Bodies that hold one table of their own before they do what the test says."""

    async def run(self, claim: Claim, started: object) -> Report:
        assert self.services is not None
        assert await self.services.hold(claim, [table_of(claim)])
        return await super().run(claim, started)  # type: ignore[arg-type]


async def test_the_report_of_a_run_that_used_tables_frees_them(band: Orchestra) -> None:
    await band.submit(make("a"))
    async with working(band, Holding()):
        await ended(band)
    assert await run_refs(band) == set()
    assert len(await drop(band)) == 1
    assert await references_left(band) == 0


async def test_a_run_that_used_none_costs_nothing(band: Orchestra) -> None:
    seen: list[Report] = []

    class Watching:
        def __getattr__(self, name: str) -> object:
            return getattr(band.coordinator, name)

        async def report(self, worker_id: int, reports: list[Report]) -> object:
            seen.extend(reports)
            return await band.coordinator.report(worker_id, reports)

    await band.submit(make("a"))
    async with working(band, ScriptedExecutor(), coordinator=Watching()):
        await ended(band)
    assert [report.holds for report in seen] == [False]


async def test_a_body_that_is_stopped_holds_its_tables_until_it_is_dead(band: Orchestra) -> None:
    """RULINGS 10."""
    dying = asyncio.Event()

    async def body(claim: Claim) -> Report:
        try:
            await asyncio.Event().wait()
        finally:
            await dying.wait()
        return done(claim)

    job = await band.submit(make("a"))
    executor = Holding(body)
    async with working(band, executor):
        await until(lambda: _is(bool(executor.running)))
        await band.coordinator.cancel(job.id)
        await asyncio.sleep(0.3)
        assert await drop(band) == set()
        dying.set()

        async def freed() -> bool:
            return await run_refs(band) == set()

        await until(freed)
    assert await drop(band) == {table_of(executor.seen[0])}


async def test_what_is_given_back_at_the_end_is_let_go(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        await asyncio.Event().wait()
        return await completes(claim)

    await band.submit(make("a"))
    executor = Holding(body)
    async with working(band, executor, grace_s=0.0):
        await until(lambda: _is(bool(executor.running)))
    assert await run_refs(band) == set()
    assert await drop(band) == {table_of(executor.seen[0])}


async def test_the_state_is_asked_again_until_it_answers(band: Orchestra) -> None:
    asked = 0

    class Failing:
        def __getattr__(self, name: str) -> object:
            return getattr(band.coordinator, name)

        async def hold(self, claim: Claim, tables: list[str]) -> str:
            nonlocal asked
            asked += 1
            if asked < 3:
                raise OSError("away")
            return await band.coordinator.hold(claim, tables)

    job = await band.submit(make("a"))
    async with working(band, Holding(), coordinator=Failing()):
        await ended(band)
    assert asked == 3
    assert (await band.job(job)).status == "completed"


async def test_a_run_that_lost_its_claim_is_told(band: Orchestra) -> None:
    told: list[Exception] = []

    async def ask(claim: Claim) -> None:
        await band.coordinator.cancel(job.id)
        assert executor.services is not None
        try:
            await executor.services.hold(claim, [table_of(claim, 2)])
        except ClaimLost as error:
            told.append(error)

    async def body(claim: Claim) -> Report:
        await asyncio.shield(ask(claim))  # a beat may stop the run before it is answered
        return await completes(claim)

    job = await band.submit(make("a"))
    executor = Holding(body)
    async with working(band, executor):
        await until(lambda: _is(bool(told)))
    assert await run_refs(band) == set()


async def _is(fact: bool) -> bool:
    return fact


async def test_a_claim_that_leaves_the_prefetch_without_a_run_lets_go_of_what_it_held(band: Orchestra) -> None:
    maker = make("maker")
    readers = [make(f"r{number}", kwargs={"x": maker}) for number in range(3)]
    job = await band.submit(maker, *readers)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    gate = asyncio.Event()

    async def body(claim: Claim) -> Report:
        await gate.wait()
        return await completes(claim)

    worker = TaskWorker(band.coordinator, ScriptedExecutor(body), concurrency=1, grace_s=0.0)
    worker._prefetch._run_s = 0.001
    running = asyncio.create_task(worker.run())
    await until(lambda: _is(len(worker.holdings) == 3))
    await band.coordinator.cancel(job.id)
    assert len({task for task, _, _ in await run_refs(band)}) == 3
    worker.obey(Orders(stop=dict.fromkeys(list(worker._prefetch._waiting), Stop.CANCELLED)))

    async def only_the_body() -> bool:
        return len({task for task, _, _ in await run_refs(band)}) == 1

    await until(only_the_body)
    gate.set()
    worker.stop()
    async with asyncio.timeout(60):
        await running
    assert await run_refs(band) == set()
