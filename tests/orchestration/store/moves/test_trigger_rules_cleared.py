"""Trigger rules are asked anew for what is cleared, and for nothing else."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.models.children import stored_node
from tests.support.band import band, member
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, failing, make

__all__ = ["band"]


async def test_clearing_an_input_runs_again_what_had_its_one(band: Orchestra) -> None:
    one, two, first = make("one"), make("two"), make("first", when="one_completed")
    first << [one, two]
    job = await band.submit(one, two, first)
    await band.drain()
    await band.coordinator.clear(two.id)
    assert (await band.statuses(job)) == {"one": "completed", "two": "pending", "first": "pending"}
    assert sorted(await band.ready_names()) == ["first", "two"]  # one had completed
    assert not await band.violations()
    await band.drain()
    assert (await band.job(job)).status == "completed"


async def test_clearing_what_failed_takes_back_what_ran_because_of_it(band: Orchestra) -> None:
    flaky, alert, done_ = make("flaky"), make("alert", when="one_failed"), make("done", when="all_done")
    flaky >> [alert, done_]
    job = await band.submit(flaky, alert, done_)
    await band.drain(failing("flaky"))
    assert set((await band.statuses(job)).values()) == {"failed", "completed"}
    await band.coordinator.retry_failed(job.id)
    await band.drain()
    found = await band.job(job)
    assert await band.statuses(job) == {"flaky": "completed", "alert": "skipped", "done": "completed"}
    assert (found.status, found.skipped_tasks, found.failed_critical) == ("completed", 1, 0)
    assert not await band.violations()


async def test_a_group_that_was_not_needed_stays_so_when_a_task_in_it_is_cleared(band: Orchestra) -> None:
    """An input that came later changes nothing: else the gate of the group would open for this one task alone."""
    first, group = make("first", priority=1), Group("g", when="one_completed")
    inner, inside = Group("inner", parent_group_id=group.id), member(group, "inside")
    job = await band.submit(first, group, inner, inside, member(group, "beside"), make("keeps open"))
    await band.complete(*(await band.claim(1)))
    first >> group
    await band.apply(job, first, group)
    await band.coordinator.clear(inside.id)
    await band.apply(job, make("late", group_id=inner.id))
    statuses = await band.statuses(job)
    assert {statuses[name] for name in ("inside", "beside", "late")} == {"skipped"}
    assert not await band.violations()


async def test_a_group_waits_again_when_the_input_that_it_had_is_made_anew(band: Orchestra) -> None:
    group, slow = Group("g", when="one_failed"), make("slow", priority=-1)
    inside = member(group, "inside")
    slow >> group
    job = await band.submit(make("parent"), slow, group, inside)
    (claim,) = await band.claim(1)
    child = make("child", critical=False)
    child >> stored_node("group", group.id)
    await band.report(grown(claim, child))
    band.coordinator.claiming.fronts.clear()  # the exact order, also where a claim was slow
    await band.fail(*(await band.claim(1)))
    band.coordinator.claiming.fronts.clear()
    await band.complete(*(await band.claim(1)))
    assert (await band.statuses(job))["inside"] == "completed"
    await band.coordinator.clear(claim.task_id)
    assert await band.ready_names() == ["parent", "slow"]
    assert not await band.violations()
    await band.drain()
    assert await band.statuses(job) == {"parent": "completed", "slow": "completed", "inside": "skipped"}


async def test_a_group_of_a_cancelled_job_is_told_when_a_task_in_it_is_cleared(band: Orchestra) -> None:
    """Its input was cancelled, and nobody told the group: the others in it, and who comes later, are not held back."""
    first, group = make("first"), Group("g", when="always")
    inner, inside, beside = Group("inner", parent_group_id=group.id), member(group, "inside"), member(group, "beside")
    first >> group
    job = await band.submit(first, group, inner, inside, beside)
    await band.coordinator.cancel(job.id)
    await band.coordinator.clear(inside.id)
    assert not await band.violations()
    await band.apply(job, make("late", group_id=inner.id))
    assert await band.ready_names() == ["inside", "late"]
    await band.coordinator.clear(beside.id)
    assert sorted(await band.ready_names()) == ["beside", "inside", "late"]
    assert not await band.violations()


async def test_who_joins_a_group_of_a_cancelled_job_that_can_never_begin_ends_too(band: Orchestra) -> None:
    first, group, other = make("first"), Group("g", when="one_failed"), make("other")
    first >> group
    job = await band.submit(first, group, other)
    await band.coordinator.cancel(job.id)
    await band.coordinator.clear(other.id)
    await band.apply(job, make("late", group_id=group.id))
    assert await band.statuses(job) == {"first": "cancelled", "other": "pending", "late": "upstream_failed"}
    assert not await band.violations()


async def test_what_is_both_doomed_and_not_needed_is_doomed(band: Orchestra) -> None:
    """When it is cleared, as when it is added."""
    bad, slow, group = make("bad", critical=False), make("slow", priority=-1), Group("g", when="one_completed")
    inside, mates = member(group, "inside"), Group("mates")
    mate = member(mates, "mate")
    mates >> inside
    make("bad mate", group_id=mates.id, critical=False)
    job = await band.submit(bad, slow, group, inside, mates)
    await band.drain(lambda claim: None if claim.name == "slow" else failing("bad", "bad mate")(claim))
    assert (await band.statuses(job))["inside"] == "skipped"
    await band.coordinator.clear(mate.id)
    assert (await band.statuses(job))["inside"] == "upstream_failed"
    held_back = Group("held back")
    await band.apply(job, held_back)
    bad >> held_back
    late = make("late", when="one_completed", group_id=held_back.id)
    await band.apply(job, bad, held_back, late)
    assert (await band.statuses(job))["late"] == "upstream_failed"
    assert not await band.violations()


@pytest.mark.parametrize(
    ("when", "status"),
    [
        ("always", "pending"),
        ("none_failed", "pending"),
        ("all_done", "upstream_failed"),
        ("one_failed", "upstream_failed"),
    ],
)
async def test_after_a_cancelled_input(band: Orchestra, when: str, status: str) -> None:
    first, last = make("first"), make("last", when=when)
    first >> last
    job = await band.submit(first, last)
    await band.coordinator.cancel(job.id)
    assert set((await band.statuses(job)).values()) == {"cancelled"}
    await band.coordinator.clear(last.id)
    assert (await band.statuses(job))["last"] == status
    assert not await band.violations()
