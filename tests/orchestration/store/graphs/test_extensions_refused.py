"""Adding to a graph that is stored: what is refused, with nothing written; and edges that are there already."""

import pytest
from sqlalchemy import select

from aaiclick.errors import CircularDependencyError, CrossJobDependency, JobEnded, NotFound, UnknownNode
from aaiclick.orchestration.models import Group, JobStatus
from aaiclick.orchestration.store.tables import dependencies
from tests.support.band import band, filled, member
from tests.support.contents import refused
from tests.support.orchestra import Orchestra, extension, failing, make

__all__ = ["band"]

NO_ONES_ID = 12345


# ---------------------------------------------------------------- equal edges


async def test_equal_edges_are_one_within_and_across_applies(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    first >> second
    first >> second
    job = await band.submit(second)
    first >> second
    await band.apply(job, second)
    third = make("third")
    second >> third
    second >> third
    await band.apply(job, third)
    assert len(await band.rows(select(dependencies))) == 2
    assert await band.violations() == []
    assert len(await band.drain()) == 3


async def test_an_equal_edge_of_another_process_is_one_with_ours(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    first >> second
    job = await band.submit(second)
    theirs = [await band.task(first), await band.task(second)]
    theirs[0] >> theirs[1]
    await band.apply(job, theirs[0])
    assert len(await band.rows(select(dependencies))) == 1
    assert await band.violations() == []


async def test_an_equal_edge_counts_as_applied_so_that_it_is_not_sent_again(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    first >> second
    job = await band.submit(second)
    first >> second
    await band.apply(job, second)
    assert all(edge.applied for edge in (*first.outgoing, *second.incoming))
    assert extension(job, first, second).edges == []


# ---------------------------------------------------------------- refused


async def test_a_job_that_is_not_there_is_said_so(band: Orchestra) -> None:
    job = await band.submit(make())
    job.id = NO_ONES_ID
    async with refused(band.database, NotFound, match=str(NO_ONES_ID)):
        await band.apply(job, make())


async def test_nothing_is_added_to_a_job_that_ended(band: Orchestra) -> None:
    first, second, group = make("first"), make("second"), filled()
    job = await band.submit(first, second, group)
    await band.drain()
    assert (await band.job(job)).status == JobStatus.COMPLETED
    first >> second
    for added in (make("late"), second, Group("late"), member(group, "late")):
        async with refused(band.database, JobEnded, match="completed"):
            await band.apply(job, added)


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
async def test_nor_to_one_that_failed_or_was_cancelled(band: Orchestra, ending: str) -> None:
    job = await band.submit(make("first"), make("second"))
    if ending == "failed":
        await band.drain(failing("first"))
    else:
        await band.coordinator.cancel(job.id)
    async with refused(band.database, JobEnded, match=ending):
        await band.apply(job, make("late"))


async def test_an_id_that_no_one_holds_is_refused(band: Orchestra) -> None:
    job = await band.submit(make())
    async with refused(band.database, UnknownNode, match=f"group {NO_ONES_ID}"):
        await band.apply(job, make("late", group_id=NO_ONES_ID))
    async with refused(band.database, UnknownNode, match=f"group {NO_ONES_ID}"):
        await band.apply(job, Group("late", parent_group_id=NO_ONES_ID))


async def test_an_edge_to_a_task_that_is_gone_is_refused(band: Orchestra) -> None:
    """Someone holds a task in memory whose row was removed meanwhile."""
    job = await band.submit(make())
    gone, late = make("gone"), make("late")
    gone.applied, gone.job_id = True, job.id
    gone >> late
    async with refused(band.database, UnknownNode, match=str(gone.id)):
        await band.apply(job, late)
    early = make("early")
    early >> gone
    async with refused(band.database, UnknownNode, match=str(gone.id)):
        await band.apply(job, early)


async def test_what_belongs_to_another_job_is_refused(band: Orchestra) -> None:
    theirs, their_group = make("theirs"), filled("their group")
    await band.submit(theirs, their_group)
    job = await band.submit(make("ours"))
    for previous, following in ((theirs, make("x")), (their_group, make("x")), (make("x"), theirs)):
        previous >> following
        ours = following if following.job_id is None else previous
        async with refused(band.database, CrossJobDependency, match="their"):
            await band.apply(job, ours)
    async with refused(band.database, CrossJobDependency, match=str(their_group.id)):
        await band.apply(job, make("late", group_id=their_group.id))
    async with refused(band.database, CrossJobDependency, match=str(their_group.id)):
        await band.apply(job, Group("late", parent_group_id=their_group.id))


async def test_another_jobs_rows_are_refused_by_the_database_too(band: Orchestra) -> None:
    """Where memory claims that they are ours: nothing of the other job is touched, its queue stays as it is."""
    theirs, their_group = make("theirs"), filled("their group")
    await band.submit(theirs, their_group)
    job = await band.submit(make("ours"))
    theirs.job_id = their_group.job_id = job.id
    for following in (theirs, their_group):
        first = make("first")
        first >> following
        async with refused(band.database, CrossJobDependency):
            await band.apply(job, first)
    assert "theirs" in await band.ready_names()


# ---------------------------------------------------------------- cycles with what is stored


async def test_a_cycle_that_only_the_stored_graph_closes_is_refused(band: Orchestra) -> None:
    first, second, third = make("first"), make("second"), make("third")
    first >> second >> third
    job = await band.submit(third)
    third >> first
    async with refused(band.database, CircularDependencyError) as caught:
        await band.apply(job, first)
    assert {"task 'first'", "task 'second'", "task 'third'"} <= set(caught.value.path.split(" → "))


async def test_a_cycle_through_a_new_task_is_refused(band: Orchestra) -> None:
    first, second, new = make("first"), make("second"), make("new")
    first >> second
    job = await band.submit(second)
    second >> new >> first
    async with refused(band.database, CircularDependencyError, match="new"):
        await band.apply(job, new)


async def test_a_cycle_through_nested_stored_groups_is_refused_and_named(band: Orchestra) -> None:
    outer = Group("outer")
    inner = Group("inner", parent_group_id=outer.id)
    deep, after = member(inner, "deep"), make("after")
    outer >> after
    job = await band.submit(after)
    new = make("new")
    after >> new >> deep
    async with refused(band.database, CircularDependencyError) as caught:
        await band.apply(job, new)
    steps = caught.value.path.split(" → ")
    assert {"task 'new'", "task 'deep'", "group 'inner'", "group 'outer'", "task 'after'"} == set(steps)


async def test_a_new_member_that_waits_for_who_waits_for_its_group_is_refused(band: Orchestra) -> None:
    group, after = filled(), make("after")
    group >> after
    job = await band.submit(after)
    async with refused(band.database, CircularDependencyError, match="late"):
        await band.apply(job, after >> member(group, "late"))


async def test_two_new_members_that_turn_the_order_of_their_groups_round_are_refused(band: Orchestra) -> None:
    before, behind = filled("before"), filled("behind")
    before >> behind
    job = await band.submit(behind)
    first, second = member(behind, "first"), member(before, "second")
    first >> second
    async with refused(band.database, CircularDependencyError):
        await band.apply(job, first, second)


async def test_after_a_refusal_the_rest_can_be_applied(band: Orchestra) -> None:
    first, second, new = make("first"), make("second"), make("new")
    first >> second
    job = await band.submit(second)
    new.depends_on(second)
    wrong = make("wrong")
    second >> wrong >> first
    async with refused(band.database, CircularDependencyError):
        await band.apply(job, new, wrong)
    assert not new.applied
    assert new.job_id is None
    await band.apply(job, new)
    assert await band.violations() == []
    assert [claim.name for claim in await band.drain()] == ["first", "second", "new"]
