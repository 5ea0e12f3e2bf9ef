"""Who waits for a run that returned tasks: wherever these are, and whoever began to wait with them."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.coordinator import batches
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.children import stored_node
from tests.support.band import band, member
from tests.support.clearing import finish
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, done, make

__all__ = ["band"]


async def test_who_waits_for_a_group_waits_for_what_was_returned_into_a_new_group_elsewhere(band: Orchestra) -> None:
    group, other, after = Group("g"), Group("other"), make("after")
    member(group, "parent"), member(other, "beside")
    group >> after
    job = await band.submit(group, other, after)
    held = await band.claim_named()
    inner = Group("inner", parent_group_id=other.id)
    guest = member(inner, "guest")
    await band.report(grown(held["parent"], inner, guest, returns=guest), done(held["beside"]))
    assert await band.ready_names() == ["guest"]
    assert await finish(band, job) == ["guest", "after"]


async def test_a_group_that_waits_does_not_wait_for_what_was_returned_into_it_at_any_depth(band: Orchestra) -> None:
    parent, outer = make("parent"), Group("outer")
    held_back = member(outer, "held back")
    parent >> outer
    job = await band.submit(parent, outer, held_back)
    (claim,) = await band.claim()
    inner = Group("inner", parent_group_id=outer.id)
    guest = member(inner, "guest")
    await band.report(grown(claim, inner, guest, returns=guest))
    assert sorted(await band.ready_names()) == ["guest", "held back"]
    assert await band.violations() == []
    assert sorted(await finish(band, job)) == ["guest", "held back"]


async def test_a_child_that_waits_for_its_own_parent_waits_for_what_that_returned(band: Orchestra) -> None:
    job = await band.submit(make("parent"))
    (claim,) = await band.claim()
    returned = make("returned")
    child = Task("some.module.f", {"x": stored_node("task", claim.task_id)}, name="child")
    twice = Task("some.module.f", {"x": stored_node("task", claim.task_id)}, name="twice")
    returned >> twice
    await band.report(grown(claim, returned, child, twice, returns=returned))
    assert await band.ready_names() == ["returned"]
    assert await band.violations() == []
    assert await finish(band, job) == ["returned", "child", "twice"]


async def test_a_child_that_waits_for_who_returned_its_parent_waits_for_what_that_returned(band: Orchestra) -> None:
    """The value of the first is that of the parent, which is that of what the parent returned."""
    job = await band.submit(make("first"))
    (claim,) = await band.claim()
    parent = make("parent")
    await band.report(grown(claim, parent, returns=parent))
    (of_parent,) = await band.claim()
    returned = make("returned")
    child = Task("some.module.f", {"x": stored_node("task", claim.task_id)}, name="child")
    await band.report(grown(of_parent, returned, child, returns=returned))
    assert await band.ready_names() == ["returned"]
    assert await band.violations() == []
    assert await finish(band, job) == ["returned", "child"]


@pytest.mark.parametrize("by_way", [False, True])
async def test_a_child_that_waits_for_a_group_around_its_parent_waits_for_what_was_returned_elsewhere(
    band: Orchestra, by_way: bool
) -> None:
    group, other = Group("g"), Group("other")
    member(other, "beside")
    job = await band.submit(make("first"), other)
    held = await band.claim_named()
    await band.report(grown(held["first"], group, member(group, "parent"), returns=group))
    (claim,) = await band.claim()
    guest = member(other, "guest")
    named = stored_node("task", held["first"].task_id) if by_way else stored_node("group", group.id)
    child = Task("some.module.f", {"x": named}, name="child", group_id=other.id)
    await band.report(grown(claim, guest, child, returns=guest))
    assert await band.ready_names() == ["guest"]
    assert await band.violations() == []
    await band.complete(held["beside"])
    assert await finish(band, job) == ["guest", "child"]


async def test_who_comes_late_and_waits_for_a_group_waits_for_what_was_returned_elsewhere(band: Orchestra) -> None:
    group, other = Group("g"), Group("other")
    inner = Group("inner", parent_group_id=group.id)
    member(inner, "parent"), member(other, "beside")
    job = await band.submit(group, inner, other)
    held = await band.claim_named()
    guest, here = member(other, "guest"), make("here", group_id=inner.id)
    await band.report(grown(held["parent"], guest, here, returns=[guest, here]), done(held["beside"]))
    claims = await band.claim_named()
    await band.complete(claims["here"])
    named = stored_node("group", group.id)
    late = Task("some.module.f", {"x": named}, name="late")
    one = Task("some.module.f", {"x": named}, name="one", when="one_completed")
    await band.apply(job, late, one)
    assert await band.ready_names() == ["one"]  # its group has completed
    assert await band.violations() == []
    await band.complete(claims["guest"])
    assert sorted(await finish(band, job)) == ["late", "one"]


async def test_a_child_that_would_wait_for_itself_through_others_is_refused(band: Orchestra) -> None:
    """It waits for who returned its parent, which returned another that waits for the child."""
    job = await band.submit(make("first"))
    (claim,) = await band.claim()
    parent = make("parent")
    await band.report(grown(claim, parent, returns=parent))
    (of_parent,) = await band.claim()
    child = Task("some.module.f", {"x": stored_node("task", claim.task_id)}, name="child")
    after = Task("some.module.f", {"x": child}, name="after")
    await band.report(grown(of_parent, child, after, returns=[child, after]))
    assert await band.violations() == []
    assert (await band.job(job)).status == "failed"
    assert "CircularDependencyError" in ((await band.job(job)).error or "")


async def test_a_run_that_returns_one_that_grows_at_the_same_time(band: Orchestra) -> None:
    first, second, after = make("first"), make("second"), make("after")
    first >> after
    job = await band.submit(first, second, after)
    held = await band.claim_named()
    child = make("child")
    first_report = grown(held["first"], returns=stored_node("task", second.id))
    second_report = grown(held["second"], child, returns=child)
    assert [len(together) for together in batches._growths([first_report, second_report])] == [1, 1]
    await band.report(first_report, second_report)
    assert await band.ready_names() == ["child"]
    assert await band.violations() == []
    assert await finish(band, job) == ["child", "after"]


async def test_a_child_that_is_doomed_from_the_start_does_not_end_the_job_before_its_siblings(band: Orchestra) -> None:
    job = await band.submit(make("parent"), make("broken"))
    held = await band.claim_named()
    await band.fail(held["broken"])
    doomed = Task("some.module.f", {"x": stored_node("task", held["broken"].task_id)}, name="doomed")
    await band.report(grown(held["parent"], doomed, make("sibling")))
    assert (await band.job(job)).status == "running"
    assert await band.violations() == []
    assert await finish(band, job, "failed") == ["sibling"]


async def test_a_run_makes_stored_tasks_and_groups_wait_for_its_children(band: Orchestra) -> None:
    """Those that are in the queue by now leave it."""
    group, alone = Group("g"), make("alone", priority=-1)
    inner = Group("inner", parent_group_id=group.id)
    inside = make("inside", group_id=inner.id, priority=-1)
    job = await band.submit(make("parent"), group, inner, inside, alone)
    (claim,) = await band.claim(1)
    child = make("child")
    child >> stored_node("task", alone.id)
    child >> stored_node("group", group.id)
    await band.report(grown(claim, child))
    assert await band.ready_names() == ["child"]
    assert await band.violations() == []
    assert sorted(await finish(band, job)) == ["alone", "child", "inside"]


async def test_a_run_cannot_make_a_task_wait_that_has_begun(band: Orchestra) -> None:
    job = await band.submit(make("parent"), make("begun"))
    held = await band.claim_named()
    child = make("child")
    child >> stored_node("task", held["begun"].task_id)
    await band.report(grown(held["parent"], child), done(held["begun"]))
    assert await finish(band, job, "failed") == []
    assert "AlreadyStarted" in ((await band.job(job)).error or "")
