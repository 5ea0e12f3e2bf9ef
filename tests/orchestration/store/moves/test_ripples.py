"""What an ending means for the rest of the graph, at once or in steps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Claim, Group, Job, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.tables import delayed, events
from tests.support.orchestra import Orchestra, done, failing, failure, make, orchestra

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


@pytest.fixture
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


# ---------------------------------------------------------------- at once


async def test_a_chain_runs_in_its_order_and_the_job_ends_with_the_last(stage: Orchestra) -> None:
    chain = [make(f"t{number}") for number in range(6)]
    for previous, following in pairwise(chain):
        previous >> following
    job = await stage.submit(*chain)
    assert [claim.name for claim in await stage.drain()] == [f"t{number}" for number in range(6)]
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


def kinds_of_dependency() -> list[tuple[str, Node, Node, list[Node]]]:
    before, after = Group("before"), Group("after")
    inside_before, inside_after = tasks_in(before, 2, "first"), tasks_in(after, 2, "second")
    first, second = make("first"), make("second")
    return [
        ("task_task", first, second, [first, second]),
        ("task_group", first, after, [first, after, *inside_after]),
        ("group_task", before, second, [before, *inside_before, second]),
        ("group_group", before, after, [before, *inside_before, after, *inside_after]),
    ]


@pytest.mark.parametrize("kind", range(4), ids=[kind[0] for kind in kinds_of_dependency()])
async def test_every_kind_of_dependency_holds_back_until_all_of_the_first_is_complete(
    stage: Orchestra, kind: int
) -> None:
    _, previous, following, nodes = kinds_of_dependency()[kind]
    previous >> following
    await stage.submit(*nodes)
    first = await stage.claim()
    assert {claim.name[:5] for claim in first} == {"first"}
    for claim in first:
        assert await stage.claim() == []
        await stage.complete(claim)
        assert not await stage.violations()
    second = await stage.claim()
    assert {claim.name[:6] for claim in second} == {"second"}
    await stage.complete(*second)
    assert not await stage.violations()


def nested(depth: int, name: str) -> list[Group]:
    groups = [Group(f"{name}0")]
    for level in range(1, depth):
        groups.append(Group(f"{name}{level}", parent_group_id=groups[-1].id))
    return groups


@pytest.mark.parametrize("outer", [0, 2, 4])
async def test_groups_wait_and_are_waited_for_through_five_levels(stage: Orchestra, outer: int) -> None:
    """Direct membership alone would let the inner tasks start too early (pitfall T2)."""
    before, after = nested(5, "before"), nested(5, "after")
    deep_before, deep_after = make("deep before", group_id=before[4].id), make("deep after", group_id=after[4].id)
    shallow = make("shallow before", group_id=before[outer].id)
    before[0] >> after[0]
    await stage.submit(*before, *after, deep_before, deep_after, shallow)
    claims = await stage.claim_named()
    assert set(claims) == {"deep before", "shallow before"}
    await stage.complete(claims["shallow before"])
    assert await stage.claim() == []
    await stage.complete(claims["deep before"])
    assert await stage.ready_names() == ["deep after"]
    assert not await stage.violations()


async def test_a_task_waits_for_its_own_edges_and_for_the_gates_of_all_groups_around_it(stage: Orchestra) -> None:
    levels = nested(3, "g")
    gates = [make(f"gate{level}") for level in range(3)]
    for gate, level in zip(gates, levels, strict=True):
        gate >> level
    own, inside = make("own"), make("inside", group_id=levels[2].id)
    own >> inside
    await stage.submit(*gates, *levels, own, inside)
    for claim in await stage.claim():
        assert "inside" not in await stage.ready_names()
        await stage.complete(claim)
        assert not await stage.violations()
    assert await stage.ready_names() == ["inside"]


async def test_an_empty_group_holds_nobody_back(stage: Orchestra) -> None:
    first, empty, nest, following = make("first"), Group("empty"), Group("nest"), make("following")
    hollow = Group("hollow", parent_group_id=nest.id)
    first >> empty >> following
    nest >> following
    await stage.submit(first, empty, nest, hollow, following)
    assert await stage.ready_names() == ["first", "following"]
    await stage.drain()
    assert not await stage.violations()


async def test_doom_spreads_through_chains_groups_and_nested_groups(stage: Orchestra) -> None:
    bad, good = make("bad"), make("good")
    outer, other = nested(3, "outer"), Group("other")
    inside, deep = make("inside", group_id=outer[0].id), make("deep", group_id=outer[2].id)
    after, chained, with_others = make("after"), make("chained"), make("with others", group_id=other.id)
    beside = make("beside", group_id=other.id)
    bad >> outer[0] >> after >> chained
    [good, chained] >> with_others
    behind = make("behind")
    other >> behind
    job = await stage.submit(bad, good, *outer, other, inside, deep, after, chained, with_others, beside, behind)
    await stage.drain(failing("bad"))
    doomed = {"inside", "deep", "after", "chained", "with others", "behind"}
    statuses = await stage.statuses(job)
    assert {name for name, status in statuses.items() if status == "upstream_failed"} == doomed
    assert {name for name, status in statuses.items() if status == "completed"} == {"good", "beside"}
    assert (await stage.job(job)).status == "failed"
    assert not await stage.violations()


async def test_a_group_with_a_failed_task_dooms_its_dependents_at_once_and_the_others_inside_go_on(
    stage: Orchestra,
) -> None:
    group, following = Group("g"), make("following")
    group >> following
    job = await stage.submit(group, make("bad", group_id=group.id), make("slow", group_id=group.id), following)
    claims = await stage.claim_named()
    await stage.fail(claims["bad"])
    assert (await stage.statuses(job))["following"] == "upstream_failed"
    assert (await stage.job(job)).status == "running"
    await stage.complete(claims["slow"])
    assert (await stage.job(job)).status == "failed"
    assert not await stage.violations()


async def test_what_completes_and_fails_in_one_batch_is_weighed_together(stage: Orchestra) -> None:
    good, bad, both = make("good"), make("bad"), make("both")
    [good, bad] >> both
    job = await stage.submit(good, bad, both)
    claims = await stage.claim_named()
    await stage.report(done(claims["good"]), failure(claims["bad"]))
    assert (await stage.statuses(job))["both"] == "upstream_failed"
    assert not await stage.violations()


async def test_a_task_that_waits_for_its_retry_and_is_doomed_leaves_the_delayed(stage: Orchestra) -> None:
    retried, late = make("retried", retry=RetryPolicy(1, delay_s=60)), make("late")
    job = await stage.submit(retried, late)
    claims = await stage.claim_named()
    await stage.fail(claims["retried"])
    late >> retried
    await stage.apply(job, late, retried)
    assert not await stage.violations()
    await stage.fail(claims["late"])
    assert await stage.rows(select(delayed)) == []
    assert await stage.coordinator.reconcile() is None
    assert (await stage.job(job)).status == "failed"
    assert not await stage.violations()


# ---------------------------------------------------------------- in steps


async def fan_out(stage: Orchestra, count: int = 12) -> tuple[Job, Task, list[Task]]:
    source, many, last = make("source"), [make(f"t{number}") for number in range(count)], make("last")
    source >> many >> last
    return await stage.submit(source, *many, last), source, many


@pytest.mark.usefixtures("small_steps")
async def test_a_wide_release_is_worked_off_in_steps(stage: Orchestra) -> None:
    job, _, _ = await fan_out(stage)
    (claim,) = await stage.claim()
    await report_and_drop(stage, claim)
    assert [kind for kind, _ in await stage.ripples()] == ["release"]
    seen = [len(await stage.ready_names())]
    while await step(stage):
        seen.append(len(await stage.ready_names()))
    assert seen == [0, 5, 10, 12]
    await stage.drain()
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


@pytest.mark.usefixtures("small_steps")
async def test_a_wide_doom_is_worked_off_in_steps_and_the_job_ends_with_the_last(stage: Orchestra) -> None:
    job, _, _ = await fan_out(stage)
    (claim,) = await stage.claim()
    await report_and_drop(stage, claim, fail=True)
    assert (await stage.job(job)).status == "running"
    while await step(stage):
        pass
    ended = await stage.job(job)
    assert (ended.status, ended.open_tasks) == ("failed", 0)
    ends = select(events.c.id).where(events.c.task_id.is_(None), events.c.move == "fail")
    assert len(await stage.rows(ends)) == 1
    assert not await stage.violations()


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("fail", [False, True], ids=["open", "drown"])
async def test_a_wide_group_opens_or_drowns_in_steps_with_the_groups_inside(stage: Orchestra, fail: bool) -> None:
    source, group = make("source"), Group("g")
    inner = Group("inner", parent_group_id=group.id)
    members, deep = tasks_in(group, 12, "t"), tasks_in(inner, 7, "deep")
    source >> group
    job = await stage.submit(source, group, inner, *members, *deep)
    (claim,) = await stage.claim()
    await report_and_drop(stage, claim, fail=fail)
    assert ("drown" if fail else "open", group.id) in await stage.ripples()
    while await step(stage):
        pass
    if not fail:
        assert len(await stage.ready_names()) == 19
        await stage.drain()
    assert (await stage.job(job)).status == ("failed" if fail else "completed")
    assert not await stage.violations()


@pytest.mark.usefixtures("small_steps")
async def test_a_crash_between_report_and_ripples_is_repaired_by_reconcile(stage: Orchestra) -> None:
    job, _, _ = await fan_out(stage, 30)
    (claim,) = await stage.claim()
    await report_and_drop(stage, claim)
    assert await stage.ready_names() == []
    await stage.coordinator.reconcile(job.id)
    assert len(await stage.ready_names()) == 30
    assert not await stage.violations()


@pytest.mark.usefixtures("small_steps")
async def test_reconcile_of_one_job_leaves_the_ripples_of_others(stage: Orchestra) -> None:
    one, _, _ = await fan_out(stage, 9)
    two, _, _ = await fan_out(stage, 9)
    await report_and_drop(stage, *(await stage.claim()))
    await stage.coordinator.reconcile(two.id)
    assert len(await stage.ready_names()) == 9
    await stage.coordinator.reconcile(one.id)
    assert len(await stage.ready_names()) == 18


@pytest.mark.usefixtures("small_steps")
async def test_a_report_works_off_what_it_postponed(stage: Orchestra) -> None:
    await fan_out(stage, 30)
    (claim,) = await stage.claim()
    assert (await stage.complete(claim)).rippling
    assert len(await stage.ready_names()) == 30


@pytest.mark.usefixtures("small_steps")
async def test_claims_and_new_edges_between_the_steps_of_a_release(stage: Orchestra) -> None:
    job, source, many = await fan_out(stage)
    (claim,) = await stage.claim()
    await report_and_drop(stage, claim)
    await step(stage)
    taken = await stage.claim(2)
    await report_and_drop(stage, taken[0])
    await stage.apply(job, make("late").depends_on(source).depends_on(many[11]))
    many[10].depends_on(extra := make("extra"))
    await stage.apply(job, extra, many[10])
    assert not await stage.violations(at_rest=False)
    while await step(stage):
        pass
    assert "late" not in await stage.ready_names()
    assert many[10].name not in await stage.ready_names()
    await stage.complete(taken[1])
    await stage.drain()
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


@pytest.mark.usefixtures("small_steps")
async def test_new_edges_and_tasks_between_the_steps_of_a_doom(stage: Orchestra) -> None:
    job, source, many = await fan_out(stage)
    await stage.apply(job, make("keeps the job open"))
    claims = await stage.claim_named()
    await report_and_drop(stage, claims["source"], fail=True)
    await step(stage)
    await stage.apply(job, make("late").depends_on(source), make("later").depends_on(many[0]))
    await stage.apply(job, make("latest").depends_on(many[11]))
    assert not await stage.violations(at_rest=False)
    while await step(stage):
        pass
    statuses = await stage.statuses(job)
    assert [statuses[name] for name in ("late", "later", "latest")] == ["upstream_failed"] * 3
    await stage.complete(claims["keeps the job open"])
    assert (await stage.job(job)).status == "failed"
    assert not await stage.violations()


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("fail", [False, True], ids=["release", "doom"])
async def test_cancelling_a_job_ends_its_doom_and_lets_its_counters_come_true(stage: Orchestra, fail: bool) -> None:
    job, _, _ = await fan_out(stage)
    (claim,) = await stage.claim()
    await report_and_drop(stage, claim, fail=fail)
    await step(stage)
    assert await stage.coordinator.cancel(job.id)
    assert bool(await stage.ripples()) is not fail
    while await step(stage):
        pass
    assert not await stage.ready_names()
    assert not await stage.violations()


@pytest.mark.parametrize("fail", [False, True], ids=["release", "doom"])
async def test_five_thousand_dependents_are_told_in_steps_of_the_real_size(stage: Orchestra, fail: bool) -> None:
    job, _, _ = await fan_out(stage, 5_000)
    (claim,) = await stage.claim()
    await report_and_drop(stage, claim, fail=fail)
    steps = 0
    while await stage.database.transact(ripples.work_one_ripple):
        steps += 1
    assert steps == 3
    if fail:
        assert (await stage.job(job)).status == "failed"
    else:
        assert len(await stage.ready_names()) == 5_000
    assert not await stage.violations()


@servers_only
@pytest.mark.usefixtures("small_steps")
async def test_two_who_work_off_ripples_share_them(stage: Orchestra) -> None:
    await fan_out(stage)
    await fan_out(stage)
    await report_and_drop(stage, *(await stage.claim()))
    async with stage.transaction() as one, stage.transaction() as two, stage.transaction() as three:
        assert await ripples.work_one_ripple(one)
        assert await ripples.work_one_ripple(two)
        assert not await ripples.work_one_ripple(three)  # both are in work
    assert len(await stage.ready_names()) == 10
    assert not await stage.violations(at_rest=False)
