"""A wide group opens in steps; between them, and at the same moment, its graph changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.models import Claim, Group, Job, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.moves import ripples
from tests.support.orchestra import Orchestra, done, extension, failure, make, orchestra

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened
        assert not await opened.violations(at_rest=False)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is more than five is postponed, and worked off five at a time."""
    monkeypatch.setattr(ripples, "STEP", 5)


def tasks_in(group: Group, count: int, name: str) -> list[Task]:
    return [make(f"{name}{number}", group_id=group.id) for number in range(count)]


async def report_and_drop(stage: Orchestra, *claims: Claim, fail: bool = False) -> None:
    """Report as a process that dies right afterwards: what was postponed stays."""
    reports = [failure(claim) if fail else done(claim) for claim in claims]
    receipt = await stage.database.transact(lambda session: take_reports(session, stage.worker, reports, lambda: 1.0))
    assert len(receipt.accepted) == len(reports)


async def step(stage: Orchestra) -> bool:
    worked = await stage.database.transact(ripples.work_one_ripple)
    assert not await stage.violations(at_rest=False)
    return worked


async def half_open(stage: Orchestra, *more: Node) -> tuple[Job, Group, list[Task]]:
    """A group of twelve whose gate opened, with its first step still to come."""
    source, group = make("source"), Group("g")
    members = tasks_in(group, 12, "t")
    source >> group
    job = await stage.submit(source, group, *members, *more)
    claims = await stage.claim_named()
    await stage.coordinator.release(stage.worker, [claim for name, claim in claims.items() if name != "source"])
    await report_and_drop(stage, claims["source"])
    assert await stage.ripples() == [("open", group.id)]
    return job, group, members


@pytest.mark.parametrize("steps", [0, 1])
async def test_tasks_and_groups_that_join_a_group_while_it_opens_may_begin(stage: Orchestra, steps: int) -> None:
    job, group, _ = await half_open(stage)
    for _ in range(steps):
        await step(stage)
    inner = Group("inner", parent_group_id=group.id)
    await stage.apply(job, make("joined", group_id=group.id), inner, make("deep", group_id=inner.id))
    assert not await stage.violations(at_rest=False)
    while await step(stage):
        pass
    assert len(await stage.ready_names()) == 14
    await stage.drain()
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


@pytest.mark.parametrize("steps", [0, 1])
async def test_a_group_that_is_held_back_again_while_it_opens_stays_closed(stage: Orchestra, steps: int) -> None:
    gate = make("gate")
    job, group, _ = await half_open(stage, gate)
    for _ in range(steps):
        await step(stage)
    gate >> group
    await stage.apply(job, gate, group, make("joined", group_id=group.id))
    assert not await stage.violations(at_rest=False)
    while await step(stage):
        pass
    assert await stage.ready_names() == ["gate"]
    await stage.drain()
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


@servers_only
@pytest.mark.parametrize("steps", [0, 1])
async def test_a_step_that_meets_an_apply_which_holds_the_group_back_again(stage: Orchestra, steps: int) -> None:
    gate = make("gate")
    job, group, _ = await half_open(stage, gate)
    for _ in range(steps):
        await step(stage)
    gate >> group
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, gate, group))
        await stage.coordinator.reconcile()  # the ripple is in the hands of the apply: nobody waits for it
    assert not await stage.violations(at_rest=False)
    await stage.coordinator.reconcile()
    assert await stage.ready_names() == ["gate"]
    await stage.drain()
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


@servers_only
@pytest.mark.parametrize("steps", [0, 1])
async def test_an_apply_that_meets_a_step_of_the_group_it_holds_back(stage: Orchestra, steps: int) -> None:
    gate = make("gate")
    job, group, _ = await half_open(stage, gate)
    for _ in range(steps):
        await step(stage)
    gate >> group
    async with stage.transaction() as stepping:
        await ripples.work_one_ripple(stepping)
        applying = asyncio.create_task(stage.apply(job, gate, group))
        await stage.until_waiting()
    await applying
    assert not await stage.violations(at_rest=False)
    await stage.coordinator.reconcile()
    assert await stage.ready_names() == ["gate"]
    await stage.drain()
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


@servers_only
async def test_groups_that_join_at_the_moment_of_the_first_step(stage: Orchestra) -> None:
    job, group, _ = await half_open(stage)
    inner = Group("inner", parent_group_id=group.id)
    async with stage.transaction() as stepping:
        await ripples.work_one_ripple(stepping)
        applying = asyncio.create_task(stage.apply(job, inner, make("deep", group_id=inner.id)))
        await stage.until_waiting()
    await applying
    assert not await stage.violations(at_rest=False)
    await stage.coordinator.reconcile()
    assert len(await stage.ready_names()) == 13
    assert not await stage.violations()
