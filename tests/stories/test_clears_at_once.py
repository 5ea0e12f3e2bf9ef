"""A clear and something else at once, forced into the order that hurts most; afterwards everything must add up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Claim, Group, Job, Task
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.claims.reports import release_claims, take_reports
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.moves.clears import Cleared, clear_tasks
from aaiclick.orchestration.store.moves.early_endings import cancel_job
from aaiclick.orchestration.store.moves.queue import promote_due
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import runs
from tests.support.band import filled, member
from tests.support.orchestra import Orchestra, done, extension, failure, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened
        assert not await opened.violations(at_rest=False)
        await opened.drain()
        assert not await opened.violations()


async def take(stage: Orchestra, session: Session, *reports: Any) -> None:
    await take_reports(session, stage.worker, reports, lambda: 1.0)


async def clear(stage: Orchestra, *roots: Task) -> Cleared:
    return await stage.database.transact(lambda session: clear_tasks(session, [root.id for root in roots]))


async def claim_one(stage: Orchestra, session: Session, job: Job) -> Claim:
    (claim,) = await claim_tasks(
        session, worker_id=stage.worker, reserved_for=0, limit=1, after=None, started={job.id}, call=1
    )
    return claim


async def pair(stage: Orchestra, **options: Any) -> tuple[Job, Task, Task, Claim]:
    """A task that runs, and one that waits for it."""
    first, following = make("first"), make("following")
    first >> following
    job = await stage.submit(first, following, **options)
    (claim,) = await stage.claim()
    return job, first, following, claim


# ---------------------------------------------------------------- and a completion


async def test_a_completion_that_waited_for_a_clear_of_its_task_is_refused(stage: Orchestra) -> None:
    job, first, _, claim = await pair(stage)
    async with stage.transaction() as clearing:
        await clear_tasks(clearing, [first.id])
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    assert not (await completing).accepted
    assert await stage.statuses(job) == {"first": "pending", "following": "pending"}


async def test_a_clear_that_waited_for_the_completion_of_its_task_undoes_it(stage: Orchestra) -> None:
    job, first, _, claim = await pair(stage)
    async with stage.transaction() as completing:
        await take(stage, completing, done(claim))
        clearing = asyncio.create_task(clear(stage, first))
        await stage.until_waiting()
    await clearing
    assert await stage.statuses(job) == {"first": "pending", "following": "pending"}
    assert await stage.ready_names() == ["first"]


@pytest.mark.parametrize("report", [done, failure], ids=["completes", "fails"])
async def test_a_predecessor_outside_that_waited_for_a_clear_is_told(stage: Orchestra, report: Any) -> None:
    job, _, following, claim = await pair(stage)
    async with stage.transaction() as clearing:
        await clear_tasks(clearing, [following.id])
        reporting = asyncio.create_task(stage.report(report(claim)))
        await stage.until_waiting()
    assert (await reporting).accepted
    statuses = await stage.statuses(job)
    assert statuses["following"] == ("pending" if report is done else "upstream_failed")
    assert await stage.ready_names() == (["following"] if report is done else [])


@pytest.mark.parametrize("report", [done, failure], ids=["completes", "fails"])
async def test_a_clear_that_waited_for_a_predecessor_outside_counts_it(stage: Orchestra, report: Any) -> None:
    job, _, following, claim = await pair(stage)
    async with stage.transaction() as reporting:
        await take(stage, reporting, report(claim))
        clearing = asyncio.create_task(clear(stage, following))
        await stage.until_waiting()
    await clearing
    assert (await stage.statuses(job))["following"] == ("pending" if report is done else "upstream_failed")
    assert await stage.ready_names() == (["following"] if report is done else [])


@pytest.mark.parametrize("clear_first", [True, False])
async def test_a_clear_inside_a_group_that_opens(stage: Orchestra, clear_first: bool) -> None:
    first, group = make("first"), Group("g")
    inside = member(group, "inside")
    inner = filled("inner", inside=group)
    first >> group
    await stage.submit(first, group, inside, inner)
    (claim,) = await stage.claim()
    async with stage.transaction() as one:
        if clear_first:
            await clear_tasks(one, [inside.id])
            other = asyncio.create_task(stage.complete(claim))
        else:
            await take(stage, one, done(claim))
            other = asyncio.create_task(clear(stage, inside))  # type: ignore[arg-type]
        await stage.until_waiting()
    await other
    assert sorted(await stage.ready_names()) == ["in inner", "inside"]


@pytest.mark.parametrize("clear_first", [True, False])
async def test_a_clear_in_a_group_whose_last_task_completes(stage: Orchestra, clear_first: bool) -> None:
    """The group is complete for a moment, or never; whoever waits for it must know which."""
    group, last = Group("g"), make("last")
    one, other = member(group, "one"), member(group, "other")
    group >> last
    await stage.submit(group, one, other, last)
    claims = await stage.claim_named()
    await stage.complete(claims["one"])
    async with stage.transaction() as first:
        if clear_first:
            await clear_tasks(first, [one.id])
            second = asyncio.create_task(stage.complete(claims["other"]))
        else:
            await take(stage, first, done(claims["other"]))
            second = asyncio.create_task(clear(stage, one))  # type: ignore[arg-type]
        await stage.until_waiting()
    await second
    assert await stage.ready_names() == ["one"]


async def test_a_clear_that_waited_for_the_last_completion_lets_the_job_go_on(stage: Orchestra) -> None:
    job = await stage.submit(task := make("only"))
    (claim,) = await stage.claim()
    async with stage.transaction() as completing:
        await take(stage, completing, done(claim))
        clearing = asyncio.create_task(clear(stage, task))
        await stage.until_waiting()
    assert (await clearing).reactivated
    assert (await stage.job(job)).status == "running"


async def test_the_last_completion_that_waited_for_a_clear_does_not_end_the_job(stage: Orchestra) -> None:
    a, b = make("a"), make("b")
    job = await stage.submit(a, b)
    claims = await stage.claim_named()
    await stage.complete(claims["a"])
    async with stage.transaction() as clearing:
        await clear_tasks(clearing, [a.id])
        completing = asyncio.create_task(stage.complete(claims["b"]))
        await stage.until_waiting()
    assert (await completing).accepted
    assert (await stage.job(job)).status == "running"


# ---------------------------------------------------------------- and a claim


async def test_a_clear_that_waited_for_a_claim_takes_it_away(stage: Orchestra) -> None:
    job = await stage.submit(task := make("a"), make("b"))
    async with stage.transaction() as claiming:
        claim = await claim_one(stage, claiming, job)
        clearing = asyncio.create_task(clear(stage, task))
        await stage.until_waiting()
    await clearing
    assert not (await stage.complete(claim)).accepted
    assert [row.outcome for row in await stage.rows(select(runs.c.outcome))].count("cleared") == 1


async def test_a_claim_finds_nothing_of_what_is_being_cleared(stage: Orchestra) -> None:
    await stage.submit(task := make("a"))
    async with stage.transaction() as clearing:
        await clear_tasks(clearing, [task.id])
        assert await stage.claim(5) == []  # it does not even wait
    assert [claim.name for claim in await stage.claim(5)] == ["a"]


async def test_a_release_that_waited_for_a_clear_gives_nothing_back(stage: Orchestra) -> None:
    await stage.submit(task := make("a"))
    (claim,) = await stage.claim()
    async with stage.transaction() as clearing:
        await clear_tasks(clearing, [task.id])
        held = {claim.task_id: claim.epoch}
        releasing = asyncio.create_task(
            stage.database.transact(lambda session: release_claims(session, stage.worker, held))
        )
        await stage.until_waiting()
    assert await releasing == set()
    assert await stage.ready_names() == ["a"]


async def test_a_clear_and_the_promotion_of_what_is_due(stage: Orchestra) -> None:
    for _ in range(5):
        await stage.submit(task := make("a", max_retries=3))
        await stage.fail(*(await stage.claim()))
        await stage.let_time_pass()
        await asyncio.gather(clear(stage, task), stage.database.transact(promote_due), clear(stage, task))
        assert await stage.ready_names() == ["a"]
        assert not await stage.violations()
        await stage.drain()


# ---------------------------------------------------------------- and another change of the graph


@pytest.mark.parametrize("clear_first", [True, False])
async def test_a_clear_and_a_cancel(stage: Orchestra, clear_first: bool) -> None:
    job, first, _, _ = await pair(stage)
    async with stage.transaction() as one:
        if clear_first:
            await clear_tasks(one, [first.id])
            other = asyncio.create_task(stage.coordinator.cancel(job.id))
        else:
            assert await cancel_job(one, job.id)
            other = asyncio.create_task(clear(stage, first))  # type: ignore[arg-type]
        await stage.until_waiting()
    await other
    assert (await stage.job(job)).status == ("cancelled" if clear_first else "running")
    assert await stage.ready_names() == ([] if clear_first else ["first"])


async def test_two_clears_of_the_same_leave_one_task_to_run(stage: Orchestra) -> None:
    _, first, following, _ = await pair(stage)
    async with stage.transaction() as one:
        await clear_tasks(one, [first.id])
        others = [asyncio.create_task(clear(stage, task)) for task in (first, following, first)]
        await stage.until_waiting()
    await asyncio.gather(*others)
    assert await stage.ready_names() == ["first"]
    assert (await stage.task(first)).generation == 3
    assert (await stage.task(following)).generation == 4


@pytest.mark.parametrize("clear_first", [True, False])
async def test_a_clear_and_an_apply_that_makes_more_wait(stage: Orchestra, clear_first: bool) -> None:
    job = await stage.submit(first := make("first"), make("keeps open"))
    named = await stage.claim_named()
    await stage.complete(named["first"])
    late = make("late")
    first >> late
    async with stage.transaction() as one:
        if clear_first:
            await clear_tasks(one, [first.id])
            other = asyncio.create_task(stage.apply(job, late))
        else:
            await extend_job(one, extension(job, late))
            other = asyncio.create_task(clear(stage, first))  # type: ignore[arg-type]
        await stage.until_waiting()
    await other
    assert await stage.ready_names() == ["first"]


async def test_a_clear_that_meets_a_step_of_a_ripple(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripples, "STEP", 3)
    source, many = make("source"), [make(f"t{number}") for number in range(9)]
    source >> many
    await stage.submit(source, *many)
    (claim,) = await stage.claim()
    await stage.database.transact(lambda session: take(stage, session, done(claim)))
    async with stage.transaction() as stepping:
        assert await ripples.work_one_ripple(stepping)
        clearing = asyncio.create_task(clear(stage, source))
        await stage.until_waiting()
    await clearing
    assert await stage.ripples() == []
    assert await stage.ready_names() == ["source"]


async def test_a_step_of_a_ripple_that_waited_for_a_clear(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step has chosen whom to tell, and must tell what is there once it gets to it."""
    monkeypatch.setattr(ripples, "STEP", 3)
    source, many = make("source"), [make(f"t{number}") for number in range(9)]
    source >> many
    await stage.submit(source, *many)
    (claim,) = await stage.claim()
    await stage.database.transact(lambda session: take(stage, session, done(claim)))
    async with stage.transaction() as clearing:
        await clear_tasks(clearing, [many[1].id])
        stepping = asyncio.create_task(stage.database.transact(ripples.work_one_ripple))
        await stage.until_waiting()
    assert await stepping
    assert await stage.ready_names() == ["t0", "t1", "t2"]


# ---------------------------------------------------------------- everything


@pytest.mark.parametrize("seed", range(4))
async def test_a_storm_of_clears_claims_reports_and_cancels_adds_up(stage: Orchestra, seed: int) -> None:
    dice = random.Random(seed)
    group, first, last = Group("g"), make("first"), make("last")
    inner = Group("inner", parent_group_id=group.id)
    inside = [member(dice.choice([group, inner]), f"t{number}") for number in range(12)]
    first >> group >> last
    inside[0] >> inside[1:4]
    job = await stage.submit(first, group, inner, last, *inside, fail_fast=bool(seed % 2))
    everyone = [first, last, *inside]

    async def work() -> None:
        for _ in range(15):
            claims = await stage.claim(dice.choice([1, 3]))
            await stage.report(*(done(claim) if dice.random() < 0.8 else failure(claim) for claim in claims))

    async def disturb() -> None:
        for _ in range(8):
            if dice.random() < 0.1:
                await stage.coordinator.cancel(job.id)
            elif dice.random() < 0.3:
                await stage.coordinator.retry_failed(job.id)
            else:
                await stage.coordinator.clear(dice.choice(everyone).id)

    await asyncio.gather(*(work() for _ in range(3)), *(disturb() for _ in range(3)))
    await stage.coordinator.reconcile()
    assert not await stage.violations()
