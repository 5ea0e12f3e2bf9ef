"""New members of stored groups: running, waiting, complete, empty, never to begin, or just about to begin."""

import logging

import pytest
from sqlalchemy import select

from aaiclick.errors import GroupComplete
from aaiclick.orchestration.models import Group, JobStatus, Task
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.moves.ripples import work_one_ripple
from aaiclick.orchestration.store.tables import groups
from tests.support.band import band, filled, member
from tests.support.contents import refused
from tests.support.orchestra import Orchestra, done, make

__all__ = ["band"]


async def open_count(band: Orchestra, group: Group) -> int:
    return int(await band.scalar(select(groups.c.open_count).where(groups.c.id == group.id)))


# ---------------------------------------------------------------- members of stored groups


async def test_tasks_join_nested_groups_that_run(band: Orchestra) -> None:
    group = filled()
    inner = filled("inner", inside=group)
    after = make("after")
    group >> after
    job = await band.submit(after)
    claims = await band.claim()
    await band.apply(job, member(inner, "late"), filled("innermost", inside=inner))
    assert await band.violations() == []
    await band.complete(*claims)
    assert await band.ready_names() == ["late", "in innermost"]
    await band.drain()
    assert (await band.statuses(job))["after"] == "completed"
    assert await band.violations() == []


async def test_a_member_of_a_group_that_waits_waits_with_it(band: Orchestra) -> None:
    first, group = make("first"), filled()
    first >> group
    job = await band.submit(first, group)
    await band.apply(job, member(group, "late"))
    assert await band.ready_names() == ["first"]
    assert await band.violations() == []
    assert {claim.name for claim in await band.drain()} == {"first", "in g", "late"}
    assert await band.violations() == []


@pytest.mark.parametrize("depth", [0, 2])
async def test_a_member_of_a_group_that_will_never_begin_is_doomed(band: Orchestra, depth: int) -> None:
    """Otherwise it would wait for ever, and its job with it."""
    failed, outer = make("failed"), filled()
    failed >> outer
    around = outer
    for level in range(depth):
        around = Group(f"level {level}", parent_group_id=around.id)
    job = await band.submit(failed, outer, make("other"))
    claims = await band.claim_named()
    await band.fail(claims["failed"])
    await band.apply(job, member(around, "late"), filled("latest", inside=around))
    statuses = await band.statuses(job)
    assert statuses["late"] == statuses["in latest"] == "upstream_failed"
    assert await band.violations() == []
    await band.complete(claims["other"])
    assert (await band.job(job)).status == JobStatus.FAILED


async def test_a_member_of_a_group_behind_a_group_that_failed_is_doomed(band: Orchestra) -> None:
    broken, group = filled("broken"), Group("g")
    broken >> group
    job = await band.submit(broken, group, make("other"))
    await band.fail((await band.claim_named())["in broken"])
    await band.apply(job, member(group, "late"))
    assert (await band.statuses(job))["late"] == "upstream_failed"
    assert await band.violations() == []


async def test_joining_a_complete_group_that_someone_waits_for_is_refused(band: Orchestra) -> None:
    group, after = filled(), make("after")
    group >> after
    job = await band.submit(after, make("other"))
    await band.complete((await band.claim_named())["in g"])
    async with refused(band.database, GroupComplete, match="'g'"):
        await band.apply(job, member(group, "late"))
    async with refused(band.database, GroupComplete):
        await band.apply(job, filled("late", inside=group))


async def test_joining_a_complete_group_is_refused_when_someone_waits_for_the_group_around_it(band: Orchestra) -> None:
    group, after = Group("g"), make("after")
    inner = filled("inner", inside=group)
    group >> after
    job = await band.submit(after, make("other"))
    await band.complete((await band.claim_named())["in inner"])
    async with refused(band.database, GroupComplete, match="'g'"):
        await band.apply(job, member(inner, "late"))


async def test_joining_a_complete_group_is_fine_while_nobody_waits_for_it(band: Orchestra) -> None:
    group = Group("g")
    inner = filled("inner", inside=group)
    job = await band.submit(group, make("other"))
    await band.complete((await band.claim_named())["in inner"])
    assert await open_count(band, group) == 0
    await band.apply(job, member(inner, "late"))
    assert await open_count(band, group) == await open_count(band, inner) == 1
    assert await band.violations() == []


async def test_who_waits_for_a_complete_group_from_the_moment_it_gets_more_waits_for_that(band: Orchestra) -> None:
    """One by one, as in 001: the group is stored first, then its tasks with those who wait for them."""
    group = Group("g")
    inner = Group("inner", parent_group_id=group.id)
    job = await band.submit(make("other"), group)
    after = make("after")
    group >> after
    await band.apply(job, member(inner, "late"), after)
    assert await band.ready_names() == ["other", "late"]
    assert await band.violations() == []
    await band.drain()
    assert (await band.job(job)).status == JobStatus.COMPLETED
    assert await band.violations() == []


async def test_an_empty_group_may_join_a_complete_group_that_someone_waits_for(band: Orchestra) -> None:
    group, after = filled(), make("after")
    group >> after
    job = await band.submit(after)
    await band.complete(*await band.claim())
    await band.apply(job, Group("empty", parent_group_id=group.id))
    assert await band.violations() == []


# ---------------------------------------------------------------- empty groups


async def test_whoever_waits_for_a_stored_empty_group_does_not_have_to_and_is_told(
    band: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    group = Group("hollow")
    Group("inner", parent_group_id=group.id)
    job = await band.submit(make("other"), group)
    with caplog.at_level(logging.WARNING, "aaiclick"):
        await band.apply(job, group >> make("after"))
    assert await band.ready_names() == ["other", "after"]
    assert "'hollow' is empty" in caplog.text
    assert await band.violations() == []


async def test_a_group_whose_tasks_are_completed_is_not_called_empty(
    band: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    group = Group("g")
    filled("inner", inside=group)
    job = await band.submit(make("other"), group)
    await band.complete((await band.claim_named())["in inner"])
    with caplog.at_level(logging.WARNING, "aaiclick"):
        await band.apply(job, group >> make("after"))
    assert caplog.text == ""


async def test_closing_an_empty_group_and_filling_it_later_holds_the_task_back(band: Orchestra) -> None:
    first, group = make("first"), Group("g")
    job = await band.submit(first, group)
    first >> group
    await band.apply(job, group)
    await band.apply(job, member(group, "late"))
    assert await band.ready_names() == ["first"]
    assert await band.violations() == []
    assert [claim.name for claim in await band.drain()] == ["first", "late"]


# ---------------------------------------------------------------- postponed ripples


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripples, "STEP", 5)


SIZE = 7
"""Tasks in a group that is told in steps of five."""


async def opened_and_postponed(band: Orchestra) -> tuple[Group, Group, Task]:
    """A group too large to be told at once that it may begin: it is free, and its own do not know yet.

    The ripple stays, as if whoever should work it off had died.
    """
    gate, group = make("gate"), Group("large")
    inner = filled("inner", inside=group)
    for _ in range(SIZE):
        member(group)
    gate >> group
    await band.submit(gate, group)
    claims = await band.claim()

    await band.database.transact(
        lambda session: take_reports(session, band.worker, [done(claim) for claim in claims], lambda: 1.0)
    )
    assert await band.ripples() == [("open", group.id)]
    return group, inner, gate


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", [0, 1])
async def test_a_group_that_is_just_being_opened_can_be_closed_again(band: Orchestra, steps: int) -> None:
    group, _, gate = await opened_and_postponed(band)
    for _ in range(steps):
        await band.database.transact(work_one_ripple)
    assert gate.job_id is not None
    job = await band.coordinator.job(gate.job_id)
    assert job is not None
    second = make("second gate")
    second >> group
    await band.apply(job, second)
    assert await band.violations(at_rest=False) == []
    await band.coordinator.reconcile()
    assert await band.ready_names() == ["second gate"]
    await band.complete(*await band.claim())
    assert await band.violations() == []
    assert len(await band.ready_names()) == SIZE + 1


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", [0, 1])
async def test_what_joins_a_group_that_is_just_being_opened_begins_once(band: Orchestra, steps: int) -> None:
    group, inner, gate = await opened_and_postponed(band)
    for _ in range(steps):
        await band.database.transact(work_one_ripple)
    assert gate.job_id is not None
    job = await band.coordinator.job(gate.job_id)
    assert job is not None
    await band.apply(job, member(group, "late"), filled("new", inside=group), member(inner, "later"))
    await band.coordinator.reconcile()
    assert await band.violations() == []
    assert len(await band.ready_names()) == SIZE + 4
    assert await band.ripples() == []
