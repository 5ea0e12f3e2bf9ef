"""Two transactions at once, forced into the order that hurts most; afterwards everything must add up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from aaiclick.errors import JobEnded
from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.claims.reports import release_claims, take_reports
from aaiclick.orchestration.store.claims.reservations import reserve_job
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.moves.early_endings import cancel_job
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, tasks
from tests.support.orchestra import Orchestra, done, extension, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened
        assert not await opened.violations(at_rest=False)


async def take(stage: Orchestra, session: Session, *reports: object) -> None:
    await take_reports(session, stage.worker, reports, lambda: 1.0)  # type: ignore[arg-type]


# ---------------------------------------------------------------- cancel


async def test_a_cancel_waits_for_a_claim_and_takes_it(stage: Orchestra) -> None:
    job = await stage.submit(make("a"), make("b"))
    await stage.complete(*(await stage.claim(1)))
    async with stage.transaction() as claiming:
        (claim,) = await claim_tasks(
            claiming, worker_id=stage.worker, reserved_for=0, limit=1, after=None, started={job.id}
        )
        cancelling = asyncio.create_task(stage.coordinator.cancel(job.id))
        await stage.until_waiting()
    assert await cancelling
    assert not (await stage.complete(claim)).accepted
    assert await stage.statuses(job) == {"a": "completed", "b": "cancelled"}


async def test_a_claim_finds_nothing_of_a_job_that_is_being_cancelled(stage: Orchestra) -> None:
    """A claim that does not look at the job hands out its tasks (pitfall T3)."""
    job = await stage.submit(make("a"), make("b"))
    async with stage.transaction() as cancelling:
        assert await cancel_job(cancelling, job.id)
        assert await stage.claim(5) == []  # it does not even wait
    assert await stage.claim(5) == []
    assert set((await stage.statuses(job)).values()) == {"cancelled"}


async def test_a_completion_that_waited_for_a_cancel_is_refused(stage: Orchestra) -> None:
    first, following = make("first"), make("following")
    first >> following
    job = await stage.submit(first, following)
    (claim,) = await stage.claim()
    async with stage.transaction() as cancelling:
        assert await cancel_job(cancelling, job.id)
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    assert not (await completing).accepted
    assert set((await stage.statuses(job)).values()) == {"cancelled"}


async def test_a_cancel_that_waited_for_the_last_completion_comes_too_late(stage: Orchestra) -> None:
    job = await stage.submit(make("only"))
    (claim,) = await stage.claim()
    async with stage.transaction() as completing:
        await take(stage, completing, done(claim))
        cancelling = asyncio.create_task(stage.coordinator.cancel(job.id))
        await stage.until_waiting()
    assert not await cancelling
    assert (await stage.job(job)).status == "completed"


async def test_a_cancel_takes_what_a_completion_has_just_readied(stage: Orchestra) -> None:
    first, following, group = make("first"), make("following"), Group("g")
    first >> [following, group]
    job = await stage.submit(first, following, group, make("inside", group_id=group.id))
    (claim,) = await stage.claim()
    async with stage.transaction() as completing:
        await take(stage, completing, done(claim))
        cancelling = asyncio.create_task(stage.coordinator.cancel(job.id))
        await stage.until_waiting()
    assert await cancelling
    assert await stage.ready_names() == []
    assert await stage.statuses(job) == {"first": "completed", "following": "cancelled", "inside": "cancelled"}


async def test_a_cancel_that_waited_for_an_apply_takes_its_tasks_too(stage: Orchestra) -> None:
    group = Group("g")
    job = await stage.submit(group, make("a", group_id=group.id))
    inner = Group("inner", parent_group_id=group.id)
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, make("late"), inner, make("deep", group_id=inner.id)))
        cancelling = asyncio.create_task(stage.coordinator.cancel(job.id))
        await stage.until_waiting()
    assert await cancelling
    assert await stage.ready_names() == []
    assert set((await stage.statuses(job)).values()) == {"cancelled"}


async def test_an_apply_that_waited_for_a_cancel_is_refused(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    async with stage.transaction() as cancelling:
        assert await cancel_job(cancelling, job.id)
        applying = asyncio.create_task(stage.apply(job, make("late")))
        await stage.until_waiting()
    with pytest.raises(JobEnded):
        await applying
    assert await stage.statuses(job) == {"a": "cancelled"}


async def test_an_apply_that_waited_for_the_end_of_the_job_is_refused(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    (claim,) = await stage.claim()
    async with stage.transaction() as completing:
        await take(stage, completing, done(claim))
        applying = asyncio.create_task(stage.apply(job, make("late")))
        await stage.until_waiting()
    with pytest.raises(JobEnded):
        await applying


async def test_the_last_completion_that_waited_for_an_apply_does_not_end_the_job(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    (claim,) = await stage.claim()
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, make("late")))
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    await completing
    assert (await stage.job(job)).status == "running"
    assert await stage.ready_names() == ["late"]


async def test_two_cancels_at_once_cancel_once(stage: Orchestra) -> None:
    job = await stage.submit(make("a"), make("b"))
    async with stage.transaction() as one:
        assert await cancel_job(one, job.id)
        other = asyncio.create_task(stage.coordinator.cancel(job.id))
        await stage.until_waiting()
    assert not await other
    ends = await stage.rows(select(events).where(events.c.task_id.is_(None), events.c.move == "cancel"))
    assert len(ends) == 1


async def test_a_release_that_waited_for_a_cancel_gives_nothing_back(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    claims = await stage.claim()
    async with stage.transaction() as cancelling:
        assert await cancel_job(cancelling, job.id)
        releasing = asyncio.create_task(stage.coordinator.release(stage.worker, claims))
        await stage.until_waiting()
    assert await releasing == set()
    assert await stage.ready_names() == []


async def test_a_cancel_that_meets_a_step_of_a_ripple(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripples, "STEP", 3)
    source, many = make("source"), [make(f"t{number}") for number in range(9)]
    source >> many
    job = await stage.submit(source, *many)
    (claim,) = await stage.claim()
    await stage.database.transact(lambda session: take(stage, session, done(claim)))
    async with stage.transaction() as stepping:
        assert await ripples.work_one_ripple(stepping)
        cancelling = asyncio.create_task(stage.coordinator.cancel(job.id))
        await stage.until_waiting()
    assert await cancelling
    await stage.coordinator.reconcile()
    assert await stage.ripples() == []
    assert await stage.ready_names() == []


# ---------------------------------------------------------------- apply


# ---------------------------------------------------------------- reserve


async def test_a_reserve_that_waited_for_a_completion_takes_what_that_readied(stage: Orchestra) -> None:
    first, following = make("first"), make("following")
    first >> following
    job = await stage.submit(first, following)
    (claim,) = await stage.claim()
    async with stage.transaction() as completing:
        await take(stage, completing, done(claim))
        reserving = asyncio.create_task(stage.coordinator.reserve(job.id, 7))
        await stage.until_waiting()
    await reserving
    assert await stage.claim(5) == []
    assert [claim.name for claim in await stage.claim(5, reserved_for=7)] == ["following"]


async def test_a_completion_that_waited_for_a_reserve_readies_where_that_said(stage: Orchestra) -> None:
    first, following = make("first"), make("following")
    first >> following
    job = await stage.submit(first, following)
    (claim,) = await stage.claim()
    async with stage.transaction() as reserving:
        await reserve_job(reserving, job.id, 7)
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    await completing
    assert await stage.claim(5) == []
    assert [claim.name for claim in await stage.claim(5, reserved_for=7)] == ["following"]


async def test_a_reserve_that_waited_for_a_claim_keeps_what_is_given_back(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    async with stage.transaction() as claiming:
        (claim,) = await claim_tasks(
            claiming, worker_id=stage.worker, reserved_for=0, limit=1, after=None, started={job.id}
        )
        reserving = asyncio.create_task(stage.coordinator.reserve(job.id, 7))
        await stage.until_waiting()
    await reserving
    await stage.database.transact(lambda session: release_claims(session, stage.worker, {claim.task_id: claim.epoch}))
    assert [claim.name for claim in await stage.claim(5, reserved_for=7)] == ["a"]


async def test_a_reserve_that_waited_for_an_apply_takes_its_tasks_too(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, make("late")))
        reserving = asyncio.create_task(stage.coordinator.reserve(job.id, 7))
        await stage.until_waiting()
    await reserving
    assert {row.reserved_for for row in await stage.rows(select(tasks.c.reserved_for))} == {7}


async def test_an_apply_that_waited_for_a_reserve_adds_where_that_said(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    async with stage.transaction() as reserving:
        await reserve_job(reserving, job.id, 7)
        applying = asyncio.create_task(stage.apply(job, make("late")))
        await stage.until_waiting()
    await applying
    assert {row.reserved_for for row in await stage.rows(select(tasks.c.reserved_for))} == {7}
