"""Backfills: every time of a range once, so many at a time, beside a schedule that fires."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from aaiclick.errors import NotFound
from aaiclick.orchestration.models import Backfill, RegisteredJob
from aaiclick.orchestration.registered_jobs import scheduled_run
from aaiclick.orchestration.rules.schedules.fires import BackfillStatus, FireOutcome
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.schedules import backfills as store
from aaiclick.orchestration.store.schedules.firing import fire_entry, note_fire
from tests.support.band import SERVERS, band
from tests.support.catalogue import come, count_jobs, fires_of, register
from tests.support.orchestra import LONG_AGO, Orchestra

__all__ = ["band"]

START = datetime(2026, 1, 1, 8, tzinfo=UTC)


async def begin(band: Orchestra, entry: RegisteredJob, days: int, **facts: Any) -> Backfill:
    row = {
        "registered_job_id": entry.id,
        "schedule": "0 8 * * *",
        "timezone": "UTC",
        "kwargs": "{}",
        "start_at": START,
        "end_at": START + timedelta(days=days),
        "parallel_max": 2,
    }
    return await band.database.transact(lambda session: store.add_backfill(session, row | facts))


async def advance(band: Orchestra, backfill: Backfill) -> bool:
    entry_id = backfill.registered_job_id
    return await band.database.transact(lambda session: store.advance(session, backfill.id, entry_id, scheduled_run))


async def status(band: Orchestra, backfill: Backfill) -> str:
    found = await band.database.read(lambda session: store.get_backfill(session, backfill.id))
    assert found is not None
    return found.status


async def test_all_times_run_and_never_more_at_once_than_allowed(band: Orchestra) -> None:
    entry = await register(band)
    backfill = await begin(band, entry, 5)
    for expected in (2, 4, 5):
        await advance(band, backfill)
        await advance(band, backfill)  # nothing more while those run
        assert await count_jobs(band) == expected
        assert await status(band, backfill) == BackfillStatus.RUNNING
        await band.complete(*await band.claim())
    await advance(band, backfill)
    assert await status(band, backfill) == BackfillStatus.COMPLETED
    found = await fires_of(band)
    assert [fire.fire_at for fire in found] == [START + timedelta(days=day) for day in range(5)]
    assert {fire.backfill_id for fire in found} == {backfill.id}
    assert await band.database.read(store.open_backfills) == []


async def test_times_that_ran_are_left_alone_and_those_that_were_skipped_run(band: Orchestra) -> None:
    entry = await register(band)
    outcomes = (FireOutcome.RUN, FireOutcome.SKIPPED, FireOutcome.QUEUED)
    for day, outcome in enumerate(outcomes):
        moment = START + timedelta(days=day)
        await band.database.transact(
            partial(note_fire, entry_id=entry.id, fire_at=moment, outcome=outcome, job_id=None, now=LONG_AGO)
        )
    backfill = await begin(band, entry, 4, parallel_max=10)
    await advance(band, backfill)
    ran = [(fire.fire_at - START).days for fire in await fires_of(band) if fire.backfill_id == backfill.id]
    assert ran == [1, 3]
    assert await count_jobs(band) == 2


async def test_a_long_range_is_worked_off_in_steps(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "AT_ONCE", 2)
    entry = await register(band)
    backfill = await begin(band, entry, 5, parallel_max=10)
    assert [await advance(band, backfill) for _ in range(4)] == [True, True, False, False]
    assert await count_jobs(band) == 5


async def test_a_cancelled_backfill_starts_nothing_more(band: Orchestra) -> None:
    entry = await register(band)
    backfill = await begin(band, entry, 5)
    await advance(band, backfill)

    async def cancel() -> bool:
        return await band.database.transact(lambda session: store.cancel_backfill(session, backfill.id))

    assert [await cancel(), await cancel()] == [True, False]
    await band.complete(*await band.claim())
    assert not await advance(band, backfill)
    assert await count_jobs(band) == 2
    assert await status(band, backfill) == BackfillStatus.CANCELLED
    with pytest.raises(NotFound, match="No backfill with id 5"):
        await band.database.transact(lambda session: store.cancel_backfill(session, 5))


async def test_the_backfills_of_an_entry_are_listed_the_newest_first(band: Orchestra) -> None:
    entry = await register(band)
    made = [(await begin(band, entry, 1)).id for _ in range(3)]
    listed = await band.database.read(lambda session: store.list_backfills(session, entry.id, 2, 0))
    assert [backfill.id for backfill in listed] == made[:0:-1]


@SERVERS
async def test_a_schedule_and_a_backfill_run_one_time_once(band: Orchestra) -> None:
    entry = await register(band, missed_runs="latest", schedule="0 8 1 1 *")
    backfill = await begin(band, entry, 1)
    await come(band, START)
    async with band.transaction() as filling:
        await store.advance(filling, backfill.id, entry.id, scheduled_run)
        firing = asyncio.create_task(
            band.database.transact(lambda session: fire_entry(session, entry.id, scheduled_run))
        )
        await band.until_waiting()
    await firing
    assert await count_jobs(band) == len(await fires_of(band))
    assert [fire.fire_at for fire in await fires_of(band)].count(START) == 1


@SERVERS
async def test_two_who_advance_one_backfill_keep_its_limit(band: Orchestra) -> None:
    entry = await register(band)
    backfill = await begin(band, entry, 9)
    async with band.transaction() as first:
        await store.advance(first, backfill.id, entry.id, scheduled_run)
        second = asyncio.create_task(advance(band, backfill))
        await band.until_waiting()
    await second
    assert await count_jobs(band) == 2


@SERVERS
async def test_a_time_whose_failed_run_is_being_cleared_is_not_run_beside_it(band: Orchestra) -> None:
    entry = await register(band)
    first = await begin(band, entry, 1)
    await advance(band, first)
    (claim,) = await band.claim()
    await band.fail(claim)
    await advance(band, first)
    assert await status(band, first) == BackfillStatus.FAILED
    again = await begin(band, entry, 1, failed_only=True)
    async with band.transaction() as clearing:
        await clear_tasks(clearing, [claim.task_id])
        filling = asyncio.create_task(advance(band, again))
        await band.until_waiting()
    await filling
    assert await count_jobs(band) == 1
    await band.complete(*await band.claim())
    await advance(band, again)
    assert await status(band, again) == BackfillStatus.COMPLETED


@SERVERS
async def test_two_forced_backfills_do_not_run_a_time_at_once(band: Orchestra) -> None:
    entry = await register(band)
    await advance(band, await begin(band, entry, 1))
    await band.complete(*await band.claim())
    one, other = [await begin(band, entry, 1, force=True) for _ in range(2)]
    async with band.transaction() as first:
        await store.advance(first, one.id, entry.id, scheduled_run)
        second = asyncio.create_task(advance(band, other))
        await band.until_waiting()
    await second
    assert await count_jobs(band) == 2
    (fire,) = await fires_of(band)
    assert fire.backfill_id == one.id
