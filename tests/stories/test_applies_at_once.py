"""A graph grows at the very moment when something ends, is claimed, or grows elsewhere; in the order that hurts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from aaiclick.errors import AlreadyStarted, CircularDependencyError, Conflict, GroupComplete
from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.session import Session
from tests.support.orchestra import Orchestra, done, extension, failure, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened
        assert not await opened.violations(at_rest=False)


async def take(stage: Orchestra, session: Session, *reports: object) -> None:
    await take_reports(session, stage.worker, reports, lambda: 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", [done, failure])
async def test_a_completion_that_waited_for_an_apply_sees_its_new_edge(stage: Orchestra, outcome: object) -> None:
    """It locks first and looks afterwards; with its first snapshot it would miss the edge."""
    a = make("a")
    job = await stage.submit(a, make("keeps the job open"))
    claim = (await stage.claim_named())["a"]
    new = make("new").depends_on(a)
    assert callable(outcome)
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, new))
        waiting = asyncio.create_task(stage.report(outcome(claim)))
        await stage.until_waiting()
    await waiting
    assert (await stage.statuses(job))["new"] == ("pending" if outcome is done else "upstream_failed")
    assert await stage.ready_names() == (["new"] if outcome is done else [])
    assert not await stage.violations()


async def test_an_apply_that_waited_for_a_completion_finds_its_edge_met(stage: Orchestra) -> None:
    a = make("a")
    job = await stage.submit(a, make("keeps the job open"))
    claim = (await stage.claim_named())["a"]
    async with stage.transaction() as completing:
        await take_reports(completing, stage.worker, [done(claim)], lambda: 1.0)
        waiting = asyncio.create_task(stage.apply(job, make("new").depends_on(a)))
        await stage.until_waiting()
    await waiting
    assert await stage.ready_names() == ["new"]
    assert not await stage.violations()


async def test_two_applies_that_together_would_close_a_cycle(stage: Orchestra) -> None:
    a, b = make("a"), make("b")
    job = await stage.submit(a, b)
    first, second = extension(job, a >> b), None
    async with stage.transaction() as one:
        await extend_job(one, first)
        b >> a
        second = extension(job, a, b)
        second.edges = [edge for edge in second.edges if edge.previous is b]
        other = asyncio.create_task(stage.coordinator.submit(second))
        await stage.until_waiting()
    with pytest.raises(CircularDependencyError):
        await other
    assert await stage.ready_names() == ["a"]


async def test_two_applies_that_together_would_close_a_cycle_through_a_group(stage: Orchestra) -> None:
    group, a = Group("g"), make("a")
    job = await stage.submit(group, make("inside", group_id=group.id), a)
    joined = make("joined", group_id=group.id).depends_on(a)
    async with stage.transaction() as one:
        await extend_job(one, extension(job, joined))
        a.depends_on(group)
        second = extension(job, a)
        second.edges = [edge for edge in second.edges if edge.next is a]
        other = asyncio.create_task(stage.coordinator.submit(second))
        await stage.until_waiting()
    with pytest.raises(CircularDependencyError):
        await other


async def test_the_same_edge_applied_twice_at_once_is_one_edge(stage: Orchestra) -> None:
    a, b = make("a"), make("b")
    job = await stage.submit(a, b)
    a >> b
    async with stage.transaction() as one:
        await extend_job(one, extension(job, a, b))
        other = asyncio.create_task(stage.apply(job, a, b))
        await stage.until_waiting()
    await other
    await stage.drain()
    assert (await stage.job(job)).status == "completed"


async def test_an_edge_to_a_task_that_is_claimed_at_this_moment_is_refused(stage: Orchestra) -> None:
    a, b = make("a"), make("b")
    job = await stage.submit(a, b)
    async with stage.transaction() as claiming:
        await claim_tasks(claiming, worker_id=stage.worker, reserved_for=0, limit=2, after=None, started=set())
        a >> b
        applying = asyncio.create_task(stage.apply(job, a, b))
        await stage.until_waiting()
    with pytest.raises(AlreadyStarted):
        await applying


async def test_a_group_is_held_back_at_the_moment_one_of_its_tasks_is_claimed(stage: Orchestra) -> None:
    gate, group = make("gate", priority=-1), Group("g")
    inner = Group("inner", parent_group_id=group.id)
    job = await stage.submit(gate, group, inner, make("inside", group_id=inner.id))
    async with stage.transaction() as claiming:
        await claim_tasks(claiming, worker_id=stage.worker, reserved_for=0, limit=1, after=None, started=set())
        gate >> group
        applying = asyncio.create_task(stage.apply(job, gate, group))
        await stage.until_waiting()
    with pytest.raises(AlreadyStarted):
        await applying


async def test_a_task_joins_a_group_that_completes_first_and_is_waited_for(stage: Orchestra) -> None:
    group, following = Group("g"), make("following")
    group >> following
    job = await stage.submit(group, make("last", group_id=group.id), following)
    (claim,) = await stage.claim()
    async with stage.transaction() as completing:
        await take(stage, completing, done(claim))
        applying = asyncio.create_task(stage.apply(job, make("late", group_id=group.id)))
        await stage.until_waiting()
    with pytest.raises(GroupComplete):
        await applying
    assert await stage.ready_names() == ["following"]


async def test_a_task_joins_a_deep_group_at_the_moment_the_outermost_completes(stage: Orchestra) -> None:
    levels = [Group("0")]
    for number in range(1, 4):
        levels.append(Group(str(number), parent_group_id=levels[-1].id))
    following = make("following")
    levels[0] >> following
    job = await stage.submit(*levels, make("last", group_id=levels[3].id), following)
    (claim,) = await stage.claim()
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, make("joined", group_id=levels[3].id)))
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    await completing
    assert await stage.ready_names() == ["joined"]


async def test_an_edge_to_a_task_at_the_moment_that_its_last_prerequisite_completes(stage: Orchestra) -> None:
    first, following, more = make("first"), make("following"), make("more", priority=-1)
    first >> following
    job = await stage.submit(first, following, more)
    (claim,) = await stage.claim(1)
    more >> following
    async with stage.transaction() as completing:
        await take(stage, completing, done(claim))
        applying = asyncio.create_task(stage.apply(job, more, following))
        await stage.until_waiting()
    await applying
    assert await stage.ready_names() == ["more"]


async def test_a_completion_of_the_last_prerequisite_that_waited_for_another_edge(stage: Orchestra) -> None:
    first, following, more = make("first"), make("following"), make("more", priority=-1)
    first >> following
    job = await stage.submit(first, following, more)
    (claim,) = await stage.claim(1)
    more >> following
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, more, following))
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    await completing
    assert await stage.ready_names() == ["more"]


async def test_doom_that_waited_for_an_apply_takes_the_new_ones_too(stage: Orchestra) -> None:
    bad, following = make("bad"), make("following")
    bad >> following
    job = await stage.submit(bad, following, make("keeps the job open"))
    claim = (await stage.claim_named())["bad"]
    group = Group("g")
    following >> group
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, group, make("inside", group_id=group.id)))
        failing = asyncio.create_task(stage.fail(claim))
        await stage.until_waiting()
    await failing
    statuses = await stage.statuses(job)
    assert (statuses["following"], statuses["inside"]) == ("upstream_failed", "upstream_failed")


async def test_an_apply_that_waited_for_doom_dooms_what_it_adds(stage: Orchestra) -> None:
    bad, following, group = make("bad"), make("following"), Group("g")
    bad >> [following, group]
    job = await stage.submit(bad, following, group, make("keeps the job open"))
    claim = (await stage.claim_named())["bad"]
    behind, inside = make("behind").depends_on(following), make("inside", group_id=group.id)
    async with stage.transaction() as failing:
        await take(stage, failing, failure(claim))
        applying = asyncio.create_task(stage.apply(job, behind, inside))
        await stage.until_waiting()
    await applying
    statuses = await stage.statuses(job)
    assert {statuses[name] for name in ("following", "behind", "inside")} == {"upstream_failed"}


async def test_the_same_task_applied_twice_at_once_is_told_and_changes_nothing(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    new = make("new")
    async with stage.transaction() as one:
        await extend_job(one, extension(job, new))
        other = asyncio.create_task(stage.apply(job, new))
        await stage.until_waiting()
    with pytest.raises(Conflict):
        await other


async def test_a_task_joins_a_group_at_the_moment_its_last_task_completes(stage: Orchestra) -> None:
    group, following = Group("g"), make("following")
    group >> following
    job = await stage.submit(group, make("last", group_id=group.id), following)
    (claim,) = await stage.claim()
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, make("joined", group_id=group.id)))
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    await completing
    assert await stage.ready_names() == ["joined"]
    assert not await stage.violations()
    await stage.drain()
    assert (await stage.statuses(job))["following"] == "completed"


@pytest.mark.parametrize("fail", [False, True], ids=["opens", "drowns"])
async def test_a_task_joins_a_group_at_the_moment_its_gate_moves(stage: Orchestra, fail: bool) -> None:
    gate, group = make("gate"), Group("g")
    gate >> group
    job = await stage.submit(gate, group, make("inside", group_id=group.id), make("keeps the job open"))
    claim = (await stage.claim_named())["gate"]
    joined = make("joined", group_id=group.id)
    async with stage.transaction() as completing:
        await take_reports(completing, stage.worker, [failure(claim) if fail else done(claim)], lambda: 1.0)
        applying = asyncio.create_task(stage.apply(job, joined))
        await stage.until_waiting()
    await applying
    assert (await stage.task(joined)).status == ("upstream_failed" if fail else "pending")
    assert await stage.ready_names() == ([] if fail else ["inside", "joined"])
    assert not await stage.violations()


async def test_a_gate_moves_at_the_moment_a_task_joins_its_group(stage: Orchestra) -> None:
    gate, group = make("gate"), Group("g")
    gate >> group
    inner = Group("inner", parent_group_id=group.id)
    job = await stage.submit(gate, group, inner, make("inside", group_id=group.id))
    (claim,) = await stage.claim()
    async with stage.transaction() as applying:
        new = Group("new", parent_group_id=inner.id)
        await extend_job(
            applying, extension(job, make("joined", group_id=inner.id), new, make("deep", group_id=new.id))
        )
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    await completing
    assert await stage.ready_names() == ["inside", "joined", "deep"]
    assert not await stage.violations()


async def test_a_group_is_waited_for_at_the_moment_it_completes(stage: Orchestra) -> None:
    group = Group("g")
    job = await stage.submit(group, make("last", group_id=group.id), make("keeps the job open"))
    claim = (await stage.claim_named())["last"]
    async with stage.transaction() as applying:
        await extend_job(applying, extension(job, make("waits").depends_on(group)))
        completing = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    await completing
    assert await stage.ready_names() == ["waits"]
    assert not await stage.violations()


async def test_two_tasks_of_two_groups_end_at_once_and_the_group_around_completes_once(stage: Orchestra) -> None:
    outer, following = Group("outer"), make("following")
    left, right = Group("left", parent_group_id=outer.id), Group("right", parent_group_id=outer.id)
    outer >> following
    await stage.submit(outer, left, right, make("a", group_id=left.id), make("b", group_id=right.id), following)
    a, b = await stage.claim()
    async with stage.transaction() as one:
        await take_reports(one, stage.worker, [done(a)], lambda: 1.0)
        other = asyncio.create_task(stage.complete(b))
        await stage.until_waiting()
    await other
    assert await stage.ready_names() == ["following"]
    assert not await stage.violations()
