"""The ready queue and the delayed: who enters, who leaves, and who is promoted when the time has come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.moves import queue
from aaiclick.orchestration.store.moves.early_endings import cancel_job
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import delayed, tasks
from tests.support.orchestra import Orchestra, done, extension, failure, make, orchestra

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


def retried(name: str = "retried", **options: object) -> Task:
    return make(name, retry=RetryPolicy(3, delay_s=60, jitter=False), **options)


async def delay_one(stage: Orchestra) -> Task:
    task = retried()
    await stage.submit(task, make("keeps the job open"))
    await stage.fail((await stage.claim_named())["retried"])
    return task


async def promote(stage: Orchestra, limit: int = 1000) -> int:
    return await stage.database.transact(lambda session: queue.promote_due(session, limit))


async def test_only_what_nothing_holds_back_becomes_ready(stage: Orchestra) -> None:
    first, blocked = make("first"), make("blocked")
    first >> blocked
    await stage.submit(first, blocked)
    (claim,) = await stage.claim()
    ids = [first.id, blocked.id]
    await stage.database.transact(lambda session: queue.make_ready(session, ids))
    assert await stage.ready_names() == []
    await stage.complete(claim)
    assert await stage.ready_names() == ["blocked"]


async def test_tasks_leave_the_queue_wherever_they_stand_in_it(stage: Orchestra) -> None:
    nodes = [make(f"t{number}", priority=number % 2) for number in range(4)]
    await stage.submit(*nodes)
    await stage.submit(make("other"), reserved_for=3)
    left = [node.id for node in nodes[:3]]
    await stage.database.transact(lambda session: queue.leave_queue(session, session.any_of(tasks.c.id, left)))
    assert await stage.ready_names() == ["t3", "other"]


async def test_what_is_due_is_promoted_and_the_rest_waits(stage: Orchestra) -> None:
    soon, later = retried("soon"), retried("later")
    await stage.submit(soon, later)
    await stage.fail(*(await stage.claim()))
    assert await promote(stage) == 0

    async def bring_forward(session: Session) -> None:
        past = (await session.now()) - timedelta(seconds=1)
        await session.run(update(tasks).where(tasks.c.id == soon.id).values(run_after=past))
        await session.run(update(delayed).where(delayed.c.task_id == soon.id).values(run_after=past))

    await stage.database.transact(bring_forward)
    assert await promote(stage) == 1
    assert await stage.ready_names() == ["soon"]
    assert not await stage.violations()
    due_s = await stage.database.read(queue.seconds_to_next_due)
    assert due_s is not None
    assert 0 < due_s <= 60


async def test_promoting_goes_on_in_bounded_portions(stage: Orchestra) -> None:
    await stage.submit(*(retried(f"t{number}") for number in range(7)))
    await stage.fail(*(await stage.claim()))
    await stage.let_time_pass()
    assert [await promote(stage, 3) for _ in range(4)] == [3, 3, 1, 0]
    assert len(await stage.ready_names()) == 7
    assert not await stage.violations()


async def test_nothing_delayed_means_no_next_time(stage: Orchestra) -> None:
    assert await stage.database.read(queue.seconds_to_next_due) is None
    await delay_one(stage)
    await stage.let_time_pass()
    assert await stage.database.read(queue.seconds_to_next_due) == 0.0


async def test_a_delayed_task_that_must_wait_for_more_is_promoted_and_not_ready(stage: Orchestra) -> None:
    task, more = retried(), make("more")
    job = await stage.submit(task, more)
    claims = await stage.claim_named()
    await stage.fail(claims["retried"])
    more >> task
    await stage.apply(job, more, task)
    await stage.let_time_pass()
    await stage.coordinator.reconcile()
    assert await stage.ready_names() == []
    assert not await stage.violations()
    await stage.complete(claims["more"])
    assert await stage.ready_names() == ["retried"]
    assert not await stage.violations()


async def test_a_delayed_task_whose_last_prerequisite_completes_still_waits_for_its_time(stage: Orchestra) -> None:
    task, more = retried(), make("more")
    job = await stage.submit(task, more)
    claims = await stage.claim_named()
    await stage.fail(claims["retried"])
    more >> task
    await stage.apply(job, more, task)
    await stage.complete(claims["more"])
    assert await stage.ready_names() == []
    assert not await stage.violations()
    await stage.let_time_pass()
    await stage.coordinator.reconcile()
    assert await stage.ready_names() == ["retried"]
    assert not await stage.violations()


async def test_a_cancelled_job_leaves_no_delayed_task(stage: Orchestra) -> None:
    task = await delay_one(stage)
    assert await stage.coordinator.cancel((await stage.task(task)).job_id or 0)
    assert await stage.rows(select(delayed)) == []
    assert await stage.coordinator.reconcile() is None
    assert not await stage.violations()


# ---------------------------------------------------------------- two at once


@servers_only
async def test_two_promoters_at_once_promote_each_task_once(stage: Orchestra) -> None:
    await stage.submit(*(retried(f"t{number}") for number in range(6)))
    await stage.fail(*(await stage.claim()))
    await stage.let_time_pass()
    async with stage.transaction() as one, stage.transaction() as two:
        assert await queue.promote_due(one, 4) == 4
        assert await queue.promote_due(two, 4) == 2
    assert len(await stage.ready_names()) == 6
    assert not await stage.violations()


@servers_only
async def test_a_promotion_that_meets_a_cancel_promotes_nothing(stage: Orchestra) -> None:
    task = await delay_one(stage)
    await stage.let_time_pass()
    async with stage.transaction() as cancelling:
        assert await cancel_job(cancelling, (await stage.task(task)).job_id or 0)
        promoting = asyncio.create_task(promote(stage))
        await asyncio.sleep(0)
    await promoting
    assert await stage.ready_names() == []
    assert (await stage.task(task)).status == "cancelled"
    assert not await stage.violations()


@servers_only
async def test_a_cancel_that_meets_a_promotion_takes_what_was_promoted(stage: Orchestra) -> None:
    task = await delay_one(stage)
    await stage.let_time_pass()
    job_id = (await stage.task(task)).job_id or 0
    async with stage.transaction() as promoting:
        assert await queue.promote_due(promoting) == 1
        cancelling = asyncio.create_task(stage.coordinator.cancel(job_id))
        await stage.until_waiting()
    assert await cancelling
    assert await stage.ready_names() == []
    assert not await stage.violations()


@servers_only
async def test_a_cancel_that_meets_a_retry_takes_its_delay_too(stage: Orchestra) -> None:
    task = retried()
    job = await stage.submit(task)
    (claim,) = await stage.claim()
    async with stage.transaction() as failing:
        await take_reports(failing, stage.worker, [failure(claim)], lambda: 1.0)
        cancelling = asyncio.create_task(stage.coordinator.cancel(job.id))
        await stage.until_waiting()
    assert await cancelling
    assert (await stage.task(task)).status == "cancelled"
    assert not await stage.violations()


@servers_only
async def test_an_apply_takes_a_task_out_of_the_queue_that_a_claim_is_about_to_take(stage: Orchestra) -> None:
    """The claim holds the queue's row: the apply waits, and is refused since the task has begun."""
    first, second = make("first"), make("second")
    job = await stage.submit(first, second)
    async with stage.transaction() as claiming:
        (claim,) = await claim_tasks(
            claiming, worker_id=stage.worker, reserved_for=0, limit=1, after=None, started={job.id}
        )
        assert claim.name == "first"
        second >> first
        applying = asyncio.create_task(stage.apply(job, first, second))
        await stage.until_waiting()
    with pytest.raises(Exception, match="claimed already"):
        await applying
    assert not await stage.violations()


@servers_only
async def test_a_claim_skips_what_an_apply_is_about_to_hold_back_and_waits_for_what_it_touches(
    stage: Orchestra,
) -> None:
    first, second = make("first"), make("second")
    job = await stage.submit(first, second)
    second >> first
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, first, second))
        claiming = asyncio.create_task(stage.claim(1))
        await stage.until_waiting()
    (claim,) = await claiming
    assert claim.name == "second"
    await stage.report(done(claim))
    assert await stage.ready_names() == ["first"]
    assert not await stage.violations()
