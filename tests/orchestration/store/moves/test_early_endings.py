"""Jobs that end before their tasks do: cancelled, or failing fast."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS, READY
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.moves.early_endings import cancel_job
from aaiclick.orchestration.store.tables import claims, runs
from tests.support.band import SERVERS, band, filled
from tests.support.orchestra import Orchestra, failing, failure, make

__all__ = ["band"]


@pytest.mark.parametrize("running", [True, False])
async def test_who_must_hear_of_a_cancel_does(band: Orchestra, running: bool) -> None:
    job = await band.submit(make("a"))
    if running:
        await band.claim()
    told: list[set[str]] = []
    band.database.on_hints = lambda hints: told.append(set(hints))
    assert await band.coordinator.cancel(job.id)
    assert not await band.coordinator.cancel(job.id)
    assert told == [{ENDED, ORDERS} if running else {ENDED}]


async def test_the_end_of_a_job_is_told(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    told: list[set[str]] = []
    band.database.on_hints = lambda hints: told.append(set(hints))
    one, other = await band.claim()
    await band.complete(one)
    await band.complete(other)
    assert told == [{ENDED}]


# ---------------------------------------------------------------- fail fast


async def test_the_first_critical_failure_ends_a_job_that_fails_fast(band: Orchestra) -> None:
    group = filled("g")
    first, bad, running, later = make("first"), make("bad"), make("running"), make("later")
    first >> group
    job = await band.submit(first, bad, running, later, group, fail_fast=True)
    named = await band.claim_named(3)
    assert set(named) == {"first", "bad", "running"}
    receipt = await band.fail(named["bad"], error="ValueError: the first")
    assert receipt.rippling
    found = await band.job(job)
    assert (found.status, found.error, found.open_tasks) == ("failed", "ValueError: the first", 0)
    statuses = await band.statuses(job)
    assert statuses.pop("bad") == "failed"
    assert set(statuses.values()) == {"cancelled"}
    assert not (await band.complete(named["running"])).accepted
    assert await band.rows(select(claims)) == []
    assert await band.violations() == []


async def test_what_may_fail_or_is_tried_again_does_not_end_it(band: Orchestra) -> None:
    job = await band.submit(
        make("tolerable", critical=False), make("again", max_retries=1), make("fine"), fail_fast=True
    )
    tolerable, again, fine = await band.claim()
    await band.fail(tolerable)
    await band.fail(again)
    assert (await band.job(job)).status == "running"
    assert (await band.complete(fine)).accepted
    await band.drain()
    assert (await band.job(job)).status == "completed"
    assert await band.violations() == []


async def test_the_last_task_to_fail_needs_no_stop(band: Orchestra) -> None:
    job = await band.submit(make("only"), fail_fast=True)
    receipt = await band.fail(*(await band.claim()))
    assert not receipt.rippling
    assert (await band.job(job)).status == "failed"
    assert await band.violations() == []


async def test_a_stop_that_was_left_by_a_crash_is_made_up_for(band: Orchestra) -> None:
    """The process that reported the failure died before it could end the job."""
    job = await band.submit(make("bad"), make("other"), fail_fast=True)
    bad, _ = await band.claim()
    await band.database.transact(lambda session: take_reports(session, band.worker, [failure(bad)], lambda: 1.0))
    assert await band.ripples() == [("stop", job.id)]
    assert (await band.job(job)).status == "running"
    assert await band.violations(at_rest=False) == []
    await band.coordinator.reconcile()
    assert (await band.job(job)).status == "failed"
    assert await band.violations() == []


@pytest.mark.parametrize("mended", [True, False])
async def test_a_stop_looks_again_at_what_has_failed(band: Orchestra, mended: bool) -> None:
    job = await band.submit(make("bad"), make("other"), make("third"), fail_fast=True)
    bad, other, _ = await band.claim()
    await band.database.transact(lambda session: take_reports(session, band.worker, [failure(bad)], lambda: 1.0))
    wanted = bad.task_id if mended else other.task_id
    await band.database.transact(lambda session: clear_tasks(session, [wanted]))
    await band.coordinator.reconcile()
    assert (await band.job(job)).status == ("running" if mended else "failed")
    assert await band.violations() == []
    if mended:
        await band.drain(failing("bad"))
        assert (await band.job(job)).status == "failed"


async def test_a_cancelled_job_is_not_stopped_as_well(band: Orchestra) -> None:
    job = await band.submit(make("bad"), make("other"), fail_fast=True)
    bad, _ = await band.claim()
    await band.database.transact(lambda session: take_reports(session, band.worker, [failure(bad)], lambda: 1.0))
    assert await band.coordinator.cancel(job.id)
    assert await band.ripples() == []
    assert (await band.job(job)).status == "cancelled"
    assert await band.violations() == []


async def test_a_job_that_fails_fast_is_told(band: Orchestra) -> None:
    await band.submit(make("bad"), make("runs"), make("later"), fail_fast=True)
    bad, _ = await band.claim(2)
    told: set[str] = set()
    band.database.on_hints = told.update
    await band.fail(bad)
    assert told - {READY} == {ENDED, ORDERS}


async def test_the_groups_of_a_job_that_fails_fast_add_up(band: Orchestra) -> None:
    with Group("outer") as outer, Group("inner"):
        make("deep")
        make("bad")
    job = await band.submit(outer >> make("last"), fail_fast=True)
    named = await band.claim_named()
    await band.complete(named["deep"])
    await band.fail(named["bad"])
    assert await band.statuses(job) == {"deep": "completed", "bad": "failed", "last": "upstream_failed"}
    assert await band.violations() == []


@SERVERS
async def test_failures_and_completions_at_once_end_it_once(band: Orchestra) -> None:
    for _ in range(5):
        job = await band.submit(*(make(f"t{number}") for number in range(12)), fail_fast=True)
        taken = await band.claim()
        await asyncio.gather(
            *(band.fail(claim) if number % 4 == 0 else band.complete(claim) for number, claim in enumerate(taken))
        )
        await band.coordinator.reconcile()
        assert (await band.job(job)).status == "failed"
        assert await band.violations() == []


@SERVERS
async def test_a_stop_that_waited_for_a_cancel_does_nothing(band: Orchestra) -> None:
    job = await band.submit(make("bad"), make("other"), fail_fast=True)
    bad, _ = await band.claim()
    await band.database.transact(lambda session: take_reports(session, band.worker, [failure(bad)], lambda: 1.0))
    async with band.transaction() as stopping:
        assert await ripples.work_one_ripple(stopping)
        cancelling = asyncio.create_task(band.database.transact(lambda session: cancel_job(session, job.id)))
        await band.until_waiting()
    assert not await cancelling
    assert (await band.job(job)).status == "failed"
    assert {row.outcome for row in await band.rows(select(runs.c.outcome))} == {"failed", "cancelled"}
    assert await band.violations() == []
