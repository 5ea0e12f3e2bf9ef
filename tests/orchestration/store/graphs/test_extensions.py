"""Adding to a graph that is stored, and may be running: what waits for what, and that the counters stay right."""

from aaiclick.errors import AlreadyStarted
from aaiclick.orchestration.models import Group, JobStatus
from aaiclick.orchestration.store.reading.jobs import get_groups
from tests.support.band import band, filled, member
from tests.support.contents import refused
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


# ---------------------------------------------------------------- what waits for what


async def test_a_new_task_behind_a_running_one_waits_for_it(band: Orchestra) -> None:
    first = make("first")
    job = await band.submit(first)
    claims = await band.claim()
    await band.apply(job, first >> make("second"))
    assert await band.ready_names() == []
    await band.complete(*claims)
    assert await band.ready_names() == ["second"]
    assert await band.violations() == []


async def test_a_new_task_behind_a_completed_one_is_ready_at_once(band: Orchestra) -> None:
    first, other = make("first"), make("other")
    job = await band.submit(first, other)
    await band.complete((await band.claim_named())["first"])
    await band.apply(job, first >> make("second"))
    assert await band.ready_names() == ["second"]
    assert await band.violations() == []


async def test_a_new_task_behind_a_failed_one_is_doomed_with_all_that_waits_for_it(band: Orchestra) -> None:
    first, other = make("first"), make("other")
    job = await band.submit(first, other)
    await band.fail((await band.claim_named())["first"])
    after = filled("after")
    last = make("last")
    first >> make("second") >> after >> last
    await band.apply(job, last)
    assert (await band.statuses(job)) == {
        "first": "failed",
        "other": "claimed",
        "second": "upstream_failed",
        "in after": "upstream_failed",
        "last": "upstream_failed",
    }
    assert await band.violations() == []


async def test_a_new_task_behind_a_complete_group_is_ready_at_once(band: Orchestra) -> None:
    group = filled()
    job = await band.submit(group, make("other"))
    await band.complete((await band.claim_named())["in g"])
    await band.apply(job, group >> make("second"))
    assert await band.ready_names() == ["second"]
    assert await band.violations() == []


async def test_a_new_task_behind_a_group_that_failed_deep_inside_is_doomed(band: Orchestra) -> None:
    group = Group("g")
    filled("h", inside=group)
    job = await band.submit(group, make("other"))
    await band.fail((await band.claim_named())["in h"])
    await band.apply(job, group >> make("second"))
    assert (await band.statuses(job))["second"] == "upstream_failed"
    assert await band.violations() == []


async def test_an_edge_between_two_stored_tasks_takes_the_second_out_of_the_queue(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    job = await band.submit(first, second)
    await band.apply(job, first >> second)
    assert await band.ready_names() == ["first"]
    assert await band.violations() == []
    assert [claim.name for claim in await band.drain()] == ["first", "second"]


async def test_an_edge_to_a_task_that_started_is_refused(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    job = await band.submit(first, second)
    assert len(await band.claim()) == 2
    async with refused(
        band.database, AlreadyStarted, match="task 'second' cannot wait for task 'first': it is claimed"
    ):
        await band.apply(job, first >> second)


async def test_an_edge_from_a_completed_task_to_one_that_started_changes_nothing_and_is_kept(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    job = await band.submit(first, second)
    claims = await band.claim_named()
    await band.complete(claims["first"])
    await band.apply(job, first >> second)
    assert await band.violations() == []
    await band.complete(claims["second"])
    assert (await band.job(job)).status == JobStatus.COMPLETED


async def test_a_new_edge_from_a_failed_task_dooms_a_stored_one(band: Orchestra) -> None:
    first, second, third = make("first"), make("second"), make("third")
    second >> third
    job = await band.submit(first, third)
    await band.fail((await band.claim_named(limit=1))["first"] if first.id < second.id else (await band.claim())[0])
    await band.apply(job, first >> second)
    assert await band.statuses(job) == {"first": "failed", "second": "upstream_failed", "third": "upstream_failed"}
    assert (await band.job(job)).status == JobStatus.FAILED
    assert await band.violations() == []


async def test_a_task_that_waits_for_its_next_attempt_may_be_made_to_wait_longer(band: Orchestra) -> None:
    retried = make("retried", max_retries=1)
    job = await band.submit(retried)
    await band.fail(*await band.claim())
    first = make("first")
    first >> retried
    await band.apply(job, first)
    assert await band.violations() == []
    assert [claim.name for claim in await band.drain()] == ["first", "retried"]
    assert await band.violations() == []


# ---------------------------------------------------------------- edges into stored groups


async def test_an_edge_into_a_stored_group_closes_its_gate_again(band: Orchestra) -> None:
    group = filled()
    inner = filled("inner", inside=group)
    job = await band.submit(group)
    assert await band.ready_names() == ["in g", "in inner"]
    first = make("first")
    first >> group
    await band.apply(job, first)
    assert await band.ready_names() == ["first"]
    assert await band.violations() == []
    await band.complete(*await band.claim())
    assert await band.ready_names() == ["in g", "in inner"]
    await band.drain()
    assert (await band.job(job)).status == JobStatus.COMPLETED
    assert await band.violations() == []
    assert inner.parent_group is group


async def test_two_edges_into_a_group_and_into_one_inside_it_each_count(band: Orchestra) -> None:
    group = filled()
    inner = filled("inner", inside=group)
    job = await band.submit(group)
    first, second = make("first"), make("second")
    first >> [group, inner]
    second >> inner
    await band.apply(job, first, second)
    assert await band.violations() == []
    claims = await band.claim_named()
    assert set(claims) == {"first", "second"}
    await band.complete(claims["first"])
    assert await band.ready_names() == ["in g"]
    await band.complete(claims["second"])
    assert await band.ready_names() == ["in g", "in inner"]
    assert await band.violations() == []


async def test_an_edge_into_a_group_with_a_task_that_started_is_refused_at_any_depth(band: Orchestra) -> None:
    group = Group("g")
    inner = filled("inner", inside=group)
    job = await band.submit(group)
    await band.claim()
    for target in (group, inner):
        first = make("first")
        first >> target
        async with refused(band.database, AlreadyStarted, match="group 'inner' cannot wait .* begun"):
            await band.apply(job, first)


async def test_an_edge_from_a_failed_task_into_a_stored_group_dooms_all_inside(band: Orchestra) -> None:
    failed, group = make("failed"), filled()
    filled("inner", inside=group)
    last = make("last")
    job = await band.submit(failed, group >> last)
    await band.fail((await band.claim_named(limit=1))["failed"])
    failed >> group
    await band.apply(job, group)
    assert set((await band.statuses(job)).values()) == {"failed", "upstream_failed"}
    assert await band.ready_names() == []
    assert await band.violations() == []


async def test_a_new_member_of_a_group_that_is_made_to_wait_in_the_same_go_waits_with_it(band: Orchestra) -> None:
    """The group is free; one apply gives it a member and something to wait for."""
    group = filled()
    inner = filled("inner", inside=group)
    job = await band.submit(group)
    first = make("first")
    first >> group
    await band.apply(job, first, member(group, "new"), member(inner, "new inside"), filled("newest", inside=inner))
    assert await band.ready_names() == ["first"]
    assert await band.violations() == []
    await band.drain()
    assert await band.violations() == []
    assert (await band.job(job)).status == JobStatus.COMPLETED


async def test_a_new_member_of_a_group_that_is_doomed_in_the_same_go_is_doomed_with_it(band: Orchestra) -> None:
    failed, group = make("failed"), filled()
    job = await band.submit(failed, group, make("other"))
    claims = await band.claim(limit=1)
    assert claims[0].name == "failed"
    await band.fail(*claims)
    failed >> group
    await band.apply(job, group, member(group, "new"))
    assert await band.ready_names() == ["other"]
    assert (await band.statuses(job))["new"] == "upstream_failed"
    assert await band.violations() == []


# ---------------------------------------------------------------- more


async def test_groups_read_from_the_database_can_be_waited_for_and_joined(band: Orchestra) -> None:
    group = filled()
    job = await band.submit(group)
    (read,) = await band.database.read(lambda session: get_groups(session, job.id))
    assert read is not group
    with read:
        late = make("late")
    after = make("after")
    read >> after
    await band.apply(job, read, after)
    assert late.applied
    assert await band.ready_names() == ["in g", "late"]
    assert await band.violations() == []
    await band.drain()
    assert await band.violations() == []


async def test_tasks_that_are_added_take_their_jobs_place_and_priority(band: Orchestra) -> None:
    job = await band.submit(make("first"), priority=5, reserved_for=7)
    late, urgent = make("late"), make("urgent", priority=9)
    await band.apply(job, late, urgent)
    found = [await band.task(late), await band.task(urgent)]
    assert [(task.reserved_for, task.priority) for task in found] == [(7, 5), (7, 9)]
    assert [claim.name for claim in await band.claim(reserved_for=7)] == ["urgent", "first", "late"]


async def test_a_graph_that_grew_in_many_small_steps_is_the_graph_that_came_at_once(band: Orchestra) -> None:
    nodes = [make(f"t{index}") for index in range(6)]
    outer = Group("outer")
    inner = Group("inner", parent_group_id=outer.id)
    nodes[1].group_id = nodes[2].group_id = inner.id
    job = await band.submit(nodes[0])
    await band.apply(job, nodes[0] >> outer)
    await band.apply(job, outer >> nodes[3])
    await band.apply(job, nodes[2].depends_on(nodes[1]))
    await band.apply(job, [nodes[3], inner] >> nodes[4])
    await band.apply(job, nodes[5])
    await band.apply(job, nodes[4].depends_on(nodes[5]))
    assert await band.violations() == []
    order = [claim.name for claim in await band.drain(limit=1)]
    assert sorted(order) == [f"t{index}" for index in range(6)]
    assert order.index("t0") < order.index("t1") < order.index("t2") < order.index("t3") < order.index("t4")
    assert (await band.job(job)).status == JobStatus.COMPLETED
