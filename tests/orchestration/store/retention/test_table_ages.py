"""Tables whose time is over."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import update

from aaiclick.errors import InputsGone
from aaiclick.orchestration.models import Claim, Job
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.object_tables.holds import register_given
from aaiclick.orchestration.store.retention.table_ages import mark_expired, mark_unclaimed
from aaiclick.orchestration.store.tables import jobs, table_context_refs
from tests.support.band import SERVERS, band
from tests.support.orchestra import LONG_AGO, Orchestra, make
from tests.support.tables import drop, failed, hold, pins, references_left, registered, returned, run_refs, table_of

__all__ = ["band"]

DAY_S = 86400.0


async def expire(band: Orchestra) -> int:
    return await band.database.transact(lambda session: mark_expired(session, DAY_S))


async def let_jobs_grow_old(band: Orchestra) -> None:
    await band.database.transact(lambda session: session.run(update(jobs).values(completed_at=LONG_AGO)))


async def let_tables_grow_old(band: Orchestra) -> None:
    await band.database.transact(lambda session: session.run(update(table_context_refs).values(created_at=LONG_AGO)))


async def failed_job(band: Orchestra) -> tuple[Job, int, str]:
    """A job that failed, with the task that did and the table that it needs."""
    a = make("a")
    b = make("b", kwargs={"x": a})
    job = await band.submit(a, b)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    (claim,) = await band.claim()
    await band.report(failed(claim, made=()))
    return job, b.id, table


async def test_pins_of_what_failed_end_with_the_jobs_time(band: Orchestra) -> None:
    """RULINGS 37."""
    _, task, table = await failed_job(band)
    assert await expire(band) == 0
    await let_jobs_grow_old(band)
    assert await expire(band) == 1
    assert await drop(band) == {table}
    assert await references_left(band) == 0
    with pytest.raises(InputsGone):
        await band.coordinator.clear(task)


async def test_full_preservation_ends_with_the_jobs_time(band: Orchestra) -> None:
    """RULINGS 36."""
    await band.submit(make("a"), preservation_mode="full")
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    assert await drop(band) == set()
    await let_jobs_grow_old(band)
    assert await expire(band) == 1
    assert await drop(band) == {table}
    assert await references_left(band) == 0


async def test_the_result_of_a_job_ends_with_its_time(band: Orchestra) -> None:
    """RULINGS 26."""
    a = make("a")
    await band.submit_returning(a, a)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    assert await drop(band) == set()
    await let_jobs_grow_old(band)
    await expire(band)
    assert await drop(band) == {table}


async def test_a_job_that_has_not_ended_keeps_its_tables(band: Orchestra) -> None:
    a = make("a")
    await band.submit(a, make("b", kwargs={"x": a}))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    await let_jobs_grow_old(band)
    assert await expire(band) == 0
    assert await registered(band) == {table}


async def test_what_a_body_still_uses_waits_for_its_end(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.coordinator.cancel(job.id)
    await let_jobs_grow_old(band)
    assert await expire(band) == 0
    assert await run_refs(band) == {(claim.task_id, claim.epoch, table)}
    await band.coordinator.let_go(band.worker, [(claim.task_id, claim.epoch)])
    assert await drop(band) == {table}


@SERVERS
async def test_a_job_that_is_cleared_meanwhile_keeps_what_it_needs(band: Orchestra) -> None:
    _, task, table = await failed_job(band)
    await let_jobs_grow_old(band)
    async with band.transaction() as session:
        await clear_tasks(session, [task])
        expiring = asyncio.create_task(expire(band))
        await band.until_waiting()
    assert await expiring == 0
    assert await registered(band) == {table}
    assert await pins(band) == {(task, table)}


@SERVERS
async def test_a_clear_that_comes_after_the_end_of_time_is_refused(band: Orchestra) -> None:
    _, task, _ = await failed_job(band)
    await let_jobs_grow_old(band)
    async with band.transaction() as session:
        await mark_expired(session, DAY_S)
        clearing = asyncio.create_task(band.coordinator.clear(task))
        await band.until_waiting()
    with pytest.raises(InputsGone):
        await clearing


@pytest.mark.parametrize("mode", list(PreservationMode))
async def test_what_was_made_for_a_job_that_never_came_goes_when_it_is_old(
    band: Orchestra, mode: PreservationMode
) -> None:
    await band.database.transact(lambda session: register_given(session, 123, ["t5_0_1"], mode))
    assert await band.database.transact(lambda session: mark_unclaimed(session, DAY_S)) == 0
    await let_tables_grow_old(band)
    assert await band.database.transact(lambda session: mark_unclaimed(session, DAY_S)) == 1
    assert await drop(band) == {"t5_0_1"}


async def test_what_is_old_and_in_use_stays(band: Orchestra) -> None:
    await failed_job(band)
    await band.submit(make("full"), preservation_mode="full")
    claims = await band.claim_named()
    (kept,) = await hold(band, claims["full"])
    await band.report(returned(claims["full"], kept, made=(kept,)))
    await drop(band)
    await let_tables_grow_old(band)
    assert await band.database.transact(lambda session: mark_unclaimed(session, DAY_S)) == 0


async def given_to_another(band: Orchestra) -> tuple[Claim, str]:
    """A live run of a job that is given a table of one that ended long ago."""
    _, _, table = await failed_job(band)
    await band.submit(make("reader", kwargs={"x": {"object_type": "object", "table": table}}))
    claims = await band.claim_named()
    await let_jobs_grow_old(band)
    return claims["reader"], table


async def test_what_a_run_of_another_job_is_given_waits_for_its_end(band: Orchestra) -> None:
    claim, table = await given_to_another(band)
    assert claim.registered
    assert await expire(band) == 0
    await band.report(returned(claim, made=()))
    assert await expire(band) == 1
    assert await drop(band) == {table}


async def test_the_first_table_of_a_run_that_takes_long_stays(band: Orchestra) -> None:
    claim, _ = await given_to_another(band)
    await let_tables_grow_old(band)
    assert await band.database.transact(lambda session: mark_unclaimed(session, DAY_S)) == 0
    assert table_of(claim) in await registered(band)
