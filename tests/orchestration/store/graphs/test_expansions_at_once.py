"""A run that made tasks completes while others add, clear, cancel or complete."""

from __future__ import annotations

import asyncio

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.graphs.expansions import complete_with_children
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.moves.early_endings import cancel_job
from tests.support.band import SERVERS, band, member
from tests.support.clearing import finish
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, done, extension, make

__all__ = ["band"]


@SERVERS
async def test_a_consumer_that_is_added_first_waits_for_the_children(band: Orchestra) -> None:
    parent, after, child = make("parent"), make("after"), make("child")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    parent >> after
    async with band.transaction() as session:
        await extend_job(session, extension(job, after))
        completing = asyncio.create_task(band.report(grown(claim, child, returns=child)))
        await band.until_waiting()
    await completing
    assert await band.ready_names() == ["child"]
    assert await finish(band, job) == ["child", "after"]


@SERVERS
async def test_a_consumer_that_is_added_second_waits_for_what_was_returned(band: Orchestra) -> None:
    parent, after, child = make("parent"), make("after"), make("child")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    parent >> after
    async with band.transaction() as session:
        await complete_with_children(session, band.worker, [grown(claim, child, make("aside"), returns=child)])
        applying = asyncio.create_task(band.apply(job, after))
        await band.until_waiting()
    await applying
    assert sorted(await band.ready_names()) == ["aside", "child"]
    assert (await finish(band, job))[-1] == "after"


@SERVERS
async def test_a_clear_that_comes_first_refuses_the_children(band: Orchestra) -> None:
    parent = make("parent")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    async with band.transaction() as session:
        await clear_tasks(session, [parent.id])
        completing = asyncio.create_task(band.report(grown(claim, make("child"))))
        await band.until_waiting()
    assert (await completing).accepted == set()
    assert await finish(band, job) == ["parent"]
    assert (await band.job(job)).total_tasks == 1


@SERVERS
async def test_a_clear_that_comes_second_removes_the_children(band: Orchestra) -> None:
    parent = make("parent")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    async with band.transaction() as session:
        await complete_with_children(session, band.worker, [grown(claim, make("child"))])
        clearing = asyncio.create_task(band.coordinator.clear(parent.id))
        await band.until_waiting()
    await clearing
    assert await finish(band, job) == ["parent"]


@SERVERS
async def test_a_cancel_that_comes_first_refuses_the_children(band: Orchestra) -> None:
    job = await band.submit(make("parent"))
    (claim,) = await band.claim()
    async with band.transaction() as session:
        await cancel_job(session, job.id)
        completing = asyncio.create_task(band.report(grown(claim, make("child"))))
        await band.until_waiting()
    assert (await completing).accepted == set()
    assert (await band.job(job)).total_tasks == 1
    assert await band.violations() == []


@SERVERS
async def test_a_cancel_that_comes_second_ends_the_children(band: Orchestra) -> None:
    job = await band.submit(make("parent"))
    (claim,) = await band.claim()
    async with band.transaction() as session:
        await complete_with_children(session, band.worker, [grown(claim, make("child"))])
        cancelling = asyncio.create_task(band.coordinator.cancel(job.id))
        await band.until_waiting()
    assert await cancelling
    assert await band.statuses(job) == {"parent": "completed", "child": "cancelled"}
    assert await band.violations() == []


@SERVERS
async def test_two_that_grow_in_one_group_and_the_last_of_its_others_end_at_once(band: Orchestra) -> None:
    group, after = Group("g"), make("after")
    for name in ("one", "two", "three"):
        member(group, name)
    group >> after
    job = await band.submit(group, after)
    held = await band.claim_named()
    await asyncio.gather(
        band.report(grown(held["one"], make("of one"))),
        band.report(grown(held["two"], make("of two"))),
        band.report(done(held["three"])),
    )
    assert sorted(await band.ready_names()) == ["of one", "of two"]
    assert sorted(await finish(band, job)) == ["after", "of one", "of two"]


@SERVERS
async def test_many_that_grow_at_once_in_one_job(band: Orchestra) -> None:
    parents = [make(f"parent {number}") for number in range(20)]
    after = make("after")
    parents >> after
    job = await band.submit(*parents, after)
    claims = await band.claim()

    async def grow(number: int) -> None:
        child = make(f"child {number}")
        await band.report(grown(claims[number], child, returns=child))

    await asyncio.gather(*(grow(number) for number in range(20)))
    assert len(await band.ready_names()) == 20
    assert (await finish(band, job))[-1] == "after"
    assert (await band.job(job)).total_tasks == 41
