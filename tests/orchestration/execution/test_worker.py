"""The worker: claims, runs, reports, obeys, and goes on whatever happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import select, update

from aaiclick.orchestration.execution import worker as module
from aaiclick.orchestration.models import Claim, Done, Failure, Orders, Report, Stop
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store import workers as store_workers
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, runs, tasks, workers
from tests.support.band import band
from tests.support.crewing import ScriptedExecutor, completes, hangs, working
from tests.support.orchestra import LONG_AGO, Orchestra, failure, make, until

__all__ = ["band"]


async def ended(band: Orchestra, count: int = 1) -> None:
    """Wait until so many jobs have ended."""

    async def all_have() -> bool:
        rows = await band.rows(select(jobs.c.status).where(jobs.c.status.in_(["completed", "failed", "cancelled"])))
        return len(rows) >= count

    await until(all_have)


async def test_what_is_ready_is_run_and_what_that_makes_ready(band: Orchestra) -> None:
    first, second, third = make("a"), make("b"), make("c")
    first >> second >> third
    job = await band.submit(first, second, third)
    executor = ScriptedExecutor()
    async with working(band, executor):
        await ended(band)
    assert [claim.name for claim in executor.seen] == ["a", "b", "c"]
    assert (await band.job(job)).status == "completed"
    assert not executor.open
    assert await band.violations() == []


async def test_no_more_run_at_once_than_there_are_slots(band: Orchestra) -> None:
    most = 0

    async def body(claim: Claim) -> Report:
        nonlocal most
        most = max(most, len(executor.running))
        await asyncio.sleep(0.002)
        return await completes(claim)

    executor = ScriptedExecutor(body)
    await band.submit(*(make(f"t{number}") for number in range(30)))
    async with working(band, executor, concurrency=3):
        await ended(band)
    assert most == 3


async def test_completions_are_told_in_few_transactions(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    report = band.coordinator.report

    async def counted(worker_id: int, reports: Any) -> Any:
        batches.append(len(reports))
        return await report(worker_id, reports)

    monkeypatch.setattr(band.coordinator, "report", counted)
    await band.submit(*(make(f"t{number}") for number in range(400)))
    async with working(band, ScriptedExecutor(), concurrency=100):
        await ended(band)
    assert sum(batches) == 400
    assert len(batches) <= 40


async def test_after_max_tasks_it_leaves_by_itself(band: Orchestra) -> None:
    await band.submit(*(make(f"t{number}") for number in range(9)))
    executor = ScriptedExecutor()
    worker = module.TaskWorker(band.coordinator, executor, concurrency=4, max_tasks=6)
    async with asyncio.timeout(60):
        await worker.run()
    assert len(executor.seen) == 6
    left = await band.rows(select(tasks.c.id).where(tasks.c.status == "pending"))
    assert len(left) == 3
    stopped = await band.database.read(lambda session: store_workers.list_workers(session, None))
    mine = next(each for each in stopped if each.id == worker.id)
    assert (mine.status, mine.tasks_completed, mine.concurrency) == ("stopped", 6, 4)


async def test_a_failed_attempt_with_a_short_delay_does_not_wait_for_the_control_loop(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        return failure(claim) if claim.attempt == 0 else await completes(claim)

    job = await band.submit(make("a", retry=RetryPolicy(max_retries=1, delay_s=0.05, jitter=False)))
    async with working(band, ScriptedExecutor(body)):
        await ended(band)
    assert (await band.job(job)).status == "completed"


async def test_a_fault_of_the_executor_fails_that_run_only(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        if claim.name == "bad":
            raise RuntimeError("the executor is broken")
        return await completes(claim)

    job = await band.submit(make("bad"), make("good"))
    async with working(band, ScriptedExecutor(body)):
        await ended(band)
    assert await band.statuses(job) == {"bad": "failed", "good": "completed"}
    assert (await band.job(job)).error == "RuntimeError: the executor is broken"


async def test_a_body_that_cancels_itself_fails(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        raise asyncio.CancelledError

    job = await band.submit(make("a"))
    async with working(band, ScriptedExecutor(body)):
        await ended(band)
    assert (await band.job(job)).status == "failed"


# ---------------------------------------------------------------- orders


async def test_a_cancelled_run_is_stopped_and_its_slot_is_free_again(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        return await (hangs if claim.name == "hangs" else completes)(claim)

    executor = ScriptedExecutor(body)
    job = await band.submit(make("hangs"))
    async with working(band, executor, concurrency=1):
        await until(lambda: _truth(bool(executor.running)))
        await band.coordinator.cancel(job.id)
        await until(lambda: _truth(bool(executor.stopped)))
        other = await band.submit(make("next"), name="other")
        await ended(band, 2)
    assert (await band.job(other)).status == "completed"
    assert (await band.job(job)).status == "cancelled"
    assert await band.violations() == []


async def test_a_run_that_is_stopped_before_its_first_step_frees_its_slot(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coroutine that is cancelled before it begins runs none of its own code."""
    claim = band.coordinator.claim
    workers_there: list[module.TaskWorker] = []

    async def claim_and_lose(*args: Any, **kwargs: Any) -> list[Claim]:
        claims = await claim(*args, **kwargs)
        for each in (each for each in claims if each.name == "lost"):
            orders = Orders(stop={(each.task_id, each.epoch): Stop.LOST})
            asyncio.get_running_loop().call_soon(workers_there[0].obey, orders)
        return claims

    monkeypatch.setattr(band.coordinator, "claim", claim_and_lose)
    executor = ScriptedExecutor()
    job = await band.submit(make("lost"))
    async with working(band, executor, concurrency=1, every_s=3600) as worker:
        workers_there.append(worker)
        await until(lambda: _truth(worker._call > 1))
        await band.coordinator.cancel(job.id)
        await band.submit(make("next"), name="other")
        await ended(band, 2)
    assert [each.name for each in executor.seen] == ["next"]


async def test_a_cleared_run_is_stopped_and_the_new_one_counts(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        if claim.generation == 0:
            return await hangs(claim)
        return Done(claim.task_id, claim.epoch, '"new"')

    executor = ScriptedExecutor(body)
    job = await band.submit(make("a"))
    async with working(band, executor):
        await until(lambda: _truth(bool(executor.running)))
        await band.coordinator.clear(executor.running[0].task_id)
        await ended(band)
    assert len(executor.stopped) == 1
    assert await band.scalar(select(tasks.c.result).where(tasks.c.job_id == job.id)) == '"new"'
    assert await band.violations() == []


async def test_told_to_drain_it_finishes_and_leaves(band: Orchestra) -> None:
    gate = asyncio.Event()

    async def body(claim: Claim) -> Report:
        await gate.wait()
        return await completes(claim)

    executor = ScriptedExecutor(body)
    job = await band.submit(make("a"), make("b"))
    async with working(band, executor, concurrency=1) as worker:
        await until(lambda: _truth(bool(executor.running)))
        await band.database.transact(lambda session: store_workers.drain_worker(session, worker.id))
        await until(lambda: _truth(worker._leaving.is_set()))
        gate.set()
    assert sorted((await band.statuses(job)).values()) == ["completed", "pending"]


async def test_a_session_that_was_swept_kills_its_runs_and_begins_anew(band: Orchestra) -> None:
    """As after a pause of the whole process: its late results are refused, and the tasks run again."""

    async def body(claim: Claim) -> Report:
        return await (hangs if claim.epoch == 1 else completes)(claim)

    executor = ScriptedExecutor(body)
    await band.submit(make("a"), make("b"))
    async with working(band, executor) as worker:
        await until(lambda: _truth(len(executor.running) == 2))
        old = worker.id

        async def pass_away(session: Session) -> None:  # at once: between the two, a heartbeat would prolong it
            await session.run(update(workers).where(workers.c.id == old).values(expires_at=LONG_AGO))
            await store_workers.expire_sessions(session)

        await band.database.transact(pass_away)

        async def swept_and_ended() -> bool:  # what the old session claimed late is swept too
            await band.database.transact(lambda session: recoveries.recover_claims(session, 10))
            return bool(await band.rows(select(jobs.c.id).where(jobs.c.status == "completed")))

        await until(swept_and_ended)
        await until(lambda: _truth(worker.id not in (0, old)))
    assert len(executor.stopped) >= 2
    outcomes = [row.outcome for row in await band.rows(select(runs.c.outcome))]
    assert outcomes.count("completed") == 2
    assert outcomes.count("lost") >= 2
    assert await band.violations() == []


# ---------------------------------------------------------------- a database that is away


class Flaky:
    """Lets calls fail before or after they happen."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._coordinator, name)
        if name not in ("claim", "report", "register", "beat", "release", "deregister"):
            return call

        async def faulty(*args: Any, **kwargs: Any) -> Any:
            if self.before.get(name, 0) > 0:
                self.before[name] -= 1
                raise ConnectionResetError("before")
            answer = await call(*args, **kwargs)
            if self.after.get(name, 0) > 0:
                self.after[name] -= 1
                raise ConnectionResetError("after")
            return answer

        return faulty


@pytest.mark.parametrize("name", ["claim", "report", "register", "beat"])
async def test_calls_that_fail_are_tried_again(band: Orchestra, name: str, caplog: pytest.LogCaptureFixture) -> None:
    flaky = Flaky(band.coordinator)
    flaky.before[name] = 3
    await band.submit(make("a"))
    async with working(band, ScriptedExecutor(), coordinator=flaky):
        await ended(band)
        await until(lambda: _truth(flaky.before[name] == 0))
    assert "ConnectionResetError: before" in caplog.text


async def test_a_claim_whose_answer_is_lost_is_found_by_the_heartbeat(band: Orchestra) -> None:
    flaky = Flaky(band.coordinator)
    flaky.after["claim"] = 1
    job = await band.submit(make("a"), make("b"))
    executor = ScriptedExecutor()
    async with working(band, executor, coordinator=flaky):
        await ended(band)
    assert (await band.job(job)).status == "completed"
    lost = await band.rows(select(tasks.c.lost_count, tasks.c.attempt))
    assert {tuple(row) for row in lost} == {(0, 0)}
    assert await band.violations() == []


async def test_a_report_whose_answer_is_lost_is_repeated_and_counts_once(band: Orchestra) -> None:
    flaky = Flaky(band.coordinator)
    flaky.after["report"] = 2
    job = await band.submit(make("a"), make("b", max_retries=0))

    async def body(claim: Claim) -> Report:
        return failure(claim) if claim.name == "b" else await completes(claim)

    executor = ScriptedExecutor(body)
    async with working(band, executor, coordinator=flaky):
        await ended(band)
    assert await band.statuses(job) == {"a": "completed", "b": "failed"}
    assert len(executor.seen) == 2
    assert await band.violations() == []


async def test_a_permanent_failure_is_a_failure(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        return Failure(claim.task_id, claim.epoch, "EntrypointError: no", permanent=True)

    job = await band.submit(make("a", max_retries=9))
    async with working(band, ScriptedExecutor(body)):
        await ended(band)
    assert (await band.job(job)).error == "EntrypointError: no"


async def _truth(is_so: bool) -> bool:
    return is_so
