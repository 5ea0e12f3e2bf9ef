"""Clearing a task whose run made tasks: that generation goes, and the next run makes its own."""

from __future__ import annotations

from sqlalchemy import func, select

from aaiclick.orchestration.models import Claim, Group, Task
from aaiclick.orchestration.store.moves.downstream import find_downstream
from aaiclick.orchestration.store.moves.removed_children import remove_made
from aaiclick.orchestration.store.tables import claims, events, groups, runs, tasks
from tests.support.band import band, member
from tests.support.clearing import clear, finish
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, done, failing, make

__all__ = ["band"]


async def names(band: Orchestra) -> list[str]:
    return sorted(row.name for row in await band.rows(select(tasks.c.name)))


async def test_a_completed_parent_loses_its_children_and_makes_them_anew(band: Orchestra) -> None:
    parent, after = make("parent"), make("after")
    parent >> after
    job = await band.submit(parent, after)
    (claim,) = await band.claim()
    old = make("old child")
    await band.report(grown(claim, old, make("aside"), returns=old))
    await finish(band, job)
    cleared = await clear(band, parent)
    assert cleared.task_ids == [parent.id, after.id]
    assert await names(band) == ["after", "parent"]
    found = await band.job(job)
    assert (found.status, found.total_tasks, found.open_tasks, found.completed_tasks) == ("running", 2, 2, 0)
    (again,) = await band.claim()
    new = make("new child")
    await band.report(grown(again, new, returns=new))
    assert await finish(band, job) == ["new child", "after"]
    assert (await band.job(job)).total_tasks == 3


async def test_events_and_history_of_what_is_removed_stay(band: Orchestra) -> None:
    parent = make("parent")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    child = make("child")
    await band.report(grown(claim, child))
    await finish(band, job)
    await clear(band, parent)
    moves = [
        row.move
        for row in await band.rows(select(events.c.move).where(events.c.task_id == child.id).order_by(events.c.id))
    ]
    assert moves == ["claim", "complete", "remove"]
    assert await band.scalar(select(runs.c.outcome).where(runs.c.task_id == child.id)) == "completed"


async def test_children_that_run_are_stopped_and_their_reports_refused(band: Orchestra) -> None:
    parent = make("parent")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    await band.report(grown(claim, make("running"), make("waiting")))
    (running,) = await band.claim(1)
    await clear(band, parent)
    assert await band.scalar(select(func.count()).select_from(claims)) == 0
    assert (await band.complete(running)).accepted == set()
    orders = await band.coordinator.beat(band.worker, known_call=0, held=[])
    assert orders.alive
    assert await finish(band, job) == ["parent"]


async def test_children_of_children_go_too_with_all_their_groups(band: Orchestra) -> None:
    group, after = Group("g"), make("after")
    parent = member(group, "parent")
    group >> after
    job = await band.submit(group, after)
    (claim,) = await band.claim()
    inner, child = Group("inner"), make("child")
    await band.report(grown(claim, child, inner, member(inner, "in inner")))
    first, second = await band.claim()
    deeper = Group("deeper")
    await band.report(grown(first, make("grandchild"), deeper, member(deeper, "in deeper")), done(second))
    await finish(band, job)
    assert await band.scalar(select(func.count()).select_from(groups)) == 3
    cleared = await clear(band, parent)
    assert cleared.task_ids == [parent.id, after.id]
    assert await names(band) == ["after", "parent"]
    assert [row.name for row in await band.rows(select(groups.c.name))] == ["g"]
    assert await finish(band, job) == ["parent", "after"]


async def test_a_child_that_is_cleared_itself_stays(band: Orchestra) -> None:
    parent, after = make("parent"), make("after")
    parent >> after
    job = await band.submit(parent, after)
    (claim,) = await band.claim()
    child = make("child")
    await band.report(grown(claim, child, returns=child))
    await band.drain(failing("child"))
    cleared = await clear(band, child)
    assert cleared.task_ids == [child.id, after.id]
    assert await finish(band, job) == ["child", "after"]
    assert await names(band) == ["after", "child", "parent"]


async def test_what_others_added_behind_a_child_is_cleared_and_waits_no_more_for_it(band: Orchestra) -> None:
    parent = make("parent")
    job = await band.submit(parent, make("keeps the job open"))
    held = await band.claim_named()
    child = make("child")
    await band.report(grown(held["parent"], child))
    added, waits = make("added"), Group("waits")
    row = await band.task(child)
    row >> added
    row >> waits
    await band.apply(job, added, waits)
    await clear(band, parent)
    assert await band.ready_names() == ["parent", "added"]
    late = make("late", group_id=waits.id)
    await band.apply(job, late)
    assert await band.ready_names() == ["parent", "added", "late"]
    await band.complete(held["keeps the job open"])
    assert sorted(await finish(band, job)) == ["added", "late", "parent"]


async def test_a_child_that_joined_another_group_is_not_counted_there_any_more(band: Orchestra) -> None:
    other, after = Group("other"), make("after")
    inside = member(other, "inside")
    other >> after
    parent = make("parent")
    job = await band.submit(parent, other, after)
    held = await band.claim_named()
    guest = Task("some.module.guest", name="guest", group_id=other.id)
    await band.report(grown(held["parent"], guest))
    await band.drain(failing("guest"))
    await band.complete(held["inside"])
    assert (await band.task(after)).status == "upstream_failed"
    assert (await band.task(inside)).status == "completed"
    await clear(band, parent)
    assert sorted(await finish(band, job)) == ["after", "parent"]


async def test_nothing_is_removed_of_a_clear_that_is_only_tried(band: Orchestra) -> None:
    parent = make("parent")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    await band.report(grown(claim, make("child")))
    await finish(band, job)
    assert await band.coordinator.clear(parent.id, dry_run=True) == [parent.id]
    assert await names(band) == ["child", "parent"]


async def test_after_a_removal_all_is_as_if_nothing_had_been_made(band: Orchestra) -> None:
    """By itself, in the middle of a clear: every counter is what a recount says."""
    parent, after = make("parent"), make("after")
    parent >> after
    job = await band.submit(parent, after)
    (claim,) = await band.claim()
    children = [make(f"child {number}") for number in range(5)]
    await band.report(grown(claim, *children, returns=children))
    for child in await band.claim(3):
        await band.complete(child)

    async def remove(session: object) -> None:
        found = await find_downstream(session, job.id, [parent.id])  # type: ignore[arg-type]
        await remove_made(session, job.id, found)  # type: ignore[arg-type]

    await band.database.transact(remove)
    assert await names(band) == ["after", "parent"]
    found = await band.job(job)
    assert (found.total_tasks, found.open_tasks, found.completed_tasks) == (2, 1, 1)


async def test_a_storm_of_clears_and_runs_leaves_one_generation(band: Orchestra) -> None:
    parent, after = make("parent"), make("after")
    parent >> after
    job = await band.submit(parent, after)
    rounds = 0

    def behave(claim: Claim) -> object:
        nonlocal rounds
        if claim.name != "parent":
            return done(claim)
        rounds += 1
        child = make(f"child {rounds}")
        return grown(claim, child, make("aside"), returns=child)

    for _ in range(4):
        await band.drain(behave, limit=1)  # type: ignore[arg-type]
        assert await names(band) == ["after", "aside", f"child {rounds}", "parent"]
        await clear(band, parent)
    assert await band.violations() == []
    assert (await band.job(job)).total_tasks == 2
