"""Jobs that ran longer than they may; the database's time is moved by moving when they started."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from aaiclick.orchestration.models import Job
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.moves.timeouts import fail_overdue_jobs
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, jobs
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


async def started(band: Orchestra, *jobs_: Job, ago_s: float) -> None:
    """These jobs began that long ago."""

    async def work(session: Session) -> None:
        began = await session.now() - timedelta(seconds=ago_s)
        for job in jobs_:
            await session.run(update(jobs).where(jobs.c.id == job.id).values(started_at=began))

    await band.database.transact(work)


async def overdue(band: Orchestra, job_id: int | None = None) -> list[int]:
    return await band.database.transact(lambda session: fail_overdue_jobs(session, job_id))


async def test_a_job_that_runs_too_long_fails_and_its_tasks_are_cancelled(band: Orchestra) -> None:
    a, b = make("a"), make("b")
    a >> b
    job = await band.submit(a, b, make("c"), timeout_s=90)
    first, second = await band.claim()
    await band.complete(second)
    await started(band, job, ago_s=100)
    told: set[str] = set()
    band.database.on_hints = told.update
    assert await overdue(band) == [job.id]
    found = await band.job(job)
    assert (found.status, found.error) == ("failed", "JobTimeout: The job ran longer than its limit of 90 s.")
    assert found.completed_at is not None
    assert await band.statuses(job) == {"a": "cancelled", "b": "cancelled", "c": "completed"}
    assert told == {ORDERS, ENDED}
    assert await band.rows(select(claims)) == []
    assert not (await band.complete(first)).accepted
    assert await overdue(band) == []
    assert await band.violations() == []


@pytest.mark.parametrize(
    ("timeout_s", "ago_s"), [(None, 1e6), (315_360_000, 1e6), (1000, 900)], ids=["no limit", "for ever", "not yet"]
)
async def test_a_job_within_its_limit_goes_on(band: Orchestra, timeout_s: float | None, ago_s: float) -> None:
    job = await band.submit(make("a"), timeout_s=timeout_s)
    await band.claim()
    await started(band, job, ago_s=ago_s)
    assert await overdue(band) == []
    assert (await band.job(job)).status == "running"


async def test_waiting_to_begin_takes_no_time(band: Orchestra) -> None:
    await band.submit(make("a"), timeout_s=0.000001)
    assert await overdue(band) == []


async def test_one_job_a_transaction_the_oldest_first(band: Orchestra) -> None:
    made = [await band.submit(make("a"), timeout_s=1) for _ in range(3)]
    await band.claim()
    await started(band, *made, ago_s=5)
    assert await overdue(band, made[1].id) == [made[1].id]
    assert [await overdue(band) for _ in range(3)] == [[made[0].id], [made[2].id], []]
    assert await band.violations() == []


async def test_a_job_that_was_late_can_be_retried_with_new_time(band: Orchestra) -> None:
    job = await band.submit(make("a"), timeout_s=50)
    await band.claim()
    await started(band, job, ago_s=100)
    await overdue(band)
    assert len(await band.coordinator.retry_failed(job.id)) == 1
    assert (await band.job(job)).error is None
    assert await overdue(band) == []
    await band.drain()
    assert (await band.job(job)).status == "completed"
    assert await band.violations() == []


async def test_the_error_is_the_timeouts_even_if_something_failed_before(band: Orchestra) -> None:
    job = await band.submit(make("bad"), make("slow"), timeout_s=50)
    bad, _ = await band.claim()
    await band.fail(bad)
    await started(band, job, ago_s=100)
    assert await overdue(band) == [job.id]
    assert (await band.job(job)).error == "JobTimeout: The job ran longer than its limit of 50 s."
    assert await band.violations() == []


@SERVERS
async def test_a_completion_that_waited_for_the_timeout_comes_too_late(band: Orchestra) -> None:
    job = await band.submit(make("a"), timeout_s=1)
    (claim,) = await band.claim()
    await started(band, job, ago_s=5)
    async with band.transaction() as failing:
        assert await fail_overdue_jobs(failing) == [job.id]
        completing = asyncio.create_task(band.complete(claim))
        await band.until_waiting()
    assert not (await completing).accepted
    assert (await band.job(job)).status == "failed"
    assert await band.violations() == []


@SERVERS
async def test_a_timeout_that_waited_for_a_clear_gives_the_job_its_time(band: Orchestra) -> None:
    """The job had ended and began anew meanwhile."""
    task = make("a")
    job = await band.submit(task, make("b"), timeout_s=60)
    claim, other = await band.claim()
    await started(band, job, ago_s=100)
    async with band.transaction() as clearing:
        await clear_tasks(clearing, [task.id])
        await clearing.run(update(jobs).values(started_at=await clearing.now()))
        failing = asyncio.create_task(overdue(band))
        await band.until_waiting()
    assert await failing == []
    assert (await band.job(job)).status == "running"
    assert claim.epoch == other.epoch
