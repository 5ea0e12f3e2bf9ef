"""Adding to a graph while others add, claim, complete, fail or cancel: whoever comes second sees what the first did."""

import asyncio

import pytest
from sqlalchemy import select

from aaiclick.errors import AlreadyStarted, CircularDependencyError, Conflict, JobEnded
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.moves.early_endings import cancel_job
from aaiclick.orchestration.store.tables import jobs
from aaiclick.orchestration.store.transitions import lock_tasks
from tests.support.band import SERVERS, band, filled, member
from tests.support.orchestra import Orchestra, done, extension, make

__all__ = ["band"]


@SERVERS
async def test_two_changes_at_once_cannot_close_a_cycle_together(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    job = await band.submit(first, second)
    first >> second
    one = extension(job, second)
    (edge,) = one.edges
    second >> first
    other = extension(job, first)
    other.edges = [found for found in other.edges if found is not edge]
    answers = await asyncio.gather(band.coordinator.submit(one), band.coordinator.submit(other), return_exceptions=True)
    assert sorted(isinstance(answer, CircularDependencyError) for answer in answers) == [False, True]
    assert await band.violations() == []
    assert len(await band.drain()) == 2


@SERVERS
async def test_a_completion_that_waits_for_an_apply_sees_its_edge(band: Orchestra) -> None:
    """It looks for edges after it has the lock: before, it would leave the new task waiting for ever."""

    first, after = make("first"), make("after")
    job = await band.submit(first)
    claims = await band.claim()
    first >> after
    async with band.transaction() as session:
        await extend_job(session, extension(job, after))
        completing = asyncio.create_task(band.complete(*claims))
        await band.until_waiting()
    await completing
    assert await band.ready_names() == ["after"]
    assert await band.violations() == []


@SERVERS
async def test_an_apply_that_waits_for_a_completion_sees_that_it_is_completed(band: Orchestra) -> None:
    first, other, after = make("first"), make("other"), make("after")
    job = await band.submit(first, other)
    claims = await band.claim_named()
    first >> after
    async with band.transaction() as session:
        await take_reports(session, band.worker, [done(claims["first"])], lambda: 1.0)
        applying = asyncio.create_task(band.apply(job, after))
        await band.until_waiting()
    await applying
    assert await band.ready_names() == ["after"]
    assert await band.violations() == []


@SERVERS
async def test_a_member_that_joins_while_what_its_group_waits_for_fails_is_doomed(band: Orchestra) -> None:
    """The failure waits for the apply, or the apply for the failure: either way nobody waits in vain."""

    gate, group = make("gate"), filled()
    gate >> group
    job = await band.submit(gate, group, make("other"))
    claims = await band.claim_named()
    async with band.transaction() as session:
        await extend_job(session, extension(job, member(group, "late")))
        failing_now = asyncio.create_task(band.fail(claims["gate"]))
        await band.until_waiting()
    await failing_now
    assert (await band.statuses(job))["late"] == "upstream_failed"
    assert await band.violations() == []


@SERVERS
async def test_an_edge_to_a_task_that_is_claimed_at_the_same_time_has_one_winner(band: Orchestra) -> None:
    for _ in range(5):
        first, second = make("first"), make("second")
        job = await band.submit(second)
        first >> second
        claims, applied = await asyncio.gather(band.claim(), band.apply(job, first), return_exceptions=True)
        assert not isinstance(claims, BaseException)
        if isinstance(applied, BaseException):
            assert isinstance(applied, AlreadyStarted | JobEnded)
            assert [claim.name for claim in claims] == ["second"]
        else:
            assert "second" not in [claim.name for claim in claims]
        await band.complete(*claims)
        await band.drain()
        assert await band.violations() == []


@SERVERS
async def test_what_a_new_edge_dooms_is_locked_before_the_job(band: Orchestra) -> None:
    """Reports lock tasks first and the job last: the other way around, the two would wait for each other."""
    first, other, hold, second, third = (make(name) for name in ("first", "other", "hold", "second", "third"))
    hold >> second >> third
    job = await band.submit(first, other, third)
    await band.fail((await band.claim_named())["first"])
    first >> second
    async with band.transaction() as session:
        await lock_tasks(session, [third.id])
        applying = asyncio.create_task(band.coordinator.submit(extension(job, second)))
        await band.until_waiting()
        locked = select(jobs.c.id).where(jobs.c.id == job.id).with_for_update(nowait=True, key_share=True)
        assert await session.scalar(locked) == job.id
    await applying
    assert (await band.statuses(job))["third"] == "upstream_failed"
    assert await band.violations() == []


@SERVERS
async def test_a_cancel_and_an_apply_at_the_same_time_leave_nothing_behind(band: Orchestra) -> None:
    for _ in range(5):
        group = filled()
        job = await band.submit(group)
        late = [member(group, "late") for _ in range(20)]
        cancelled, applied = await asyncio.gather(
            band.coordinator.cancel(job.id), band.apply(job, *late), return_exceptions=True
        )
        assert cancelled is True
        assert not isinstance(applied, BaseException) or isinstance(applied, JobEnded)
        assert set((await band.statuses(job)).values()) == {"cancelled"}
        assert await band.violations() == []


@SERVERS
async def test_a_cancel_finds_tasks_that_were_added_while_it_waited(band: Orchestra) -> None:

    job = await band.submit(make("first"))
    async with band.transaction() as session:
        await extend_job(session, extension(job, make("late")))
        cancelling = asyncio.create_task(band.database.transact(lambda inner: cancel_job(inner, job.id)))
        await band.until_waiting()
    assert await cancelling is True
    assert await band.statuses(job) == {"first": "cancelled", "late": "cancelled"}
    assert await band.violations() == []


@pytest.mark.parametrize("count", [1, 150])
async def test_the_same_tasks_in_two_applies_at_once_are_stored_once(band: Orchestra, count: int) -> None:
    job = await band.submit(make("first"))
    late = [make("late") for _ in range(count)]
    answers = await asyncio.gather(
        *(band.coordinator.submit(extension(job, *late)) for _ in range(2)), return_exceptions=True
    )
    refusals = [answer for answer in answers if isinstance(answer, BaseException)]
    assert len(refusals) == 1
    assert isinstance(refusals[0], Conflict)
    assert "late" in str(refusals[0])
    assert (await band.job(job)).total_tasks == count + 1
    assert await band.violations() == []
