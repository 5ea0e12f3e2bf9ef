"""What is due becomes jobs: each time once, by the entry's policies, whoever else is at it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from aaiclick.orchestration.coordinator.registered_jobs import upsert_registered_job
from aaiclick.orchestration.models import RegisteredJob
from aaiclick.orchestration.registered_jobs import scheduled_run
from aaiclick.orchestration.rules.placement import needs_of
from aaiclick.orchestration.rules.schedules.fires import FireOutcome
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.schedules import firing as schedules
from aaiclick.orchestration.store.schedules import registered_jobs
from aaiclick.orchestration.store.schedules.firing import Fired
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, tasks
from tests.support.band import SERVERS, band
from tests.support.catalogue import come, count_jobs, days_ago, entry_of, fires_of, register
from tests.support.orchestra import LONG_AGO, Orchestra

__all__ = ["band"]

RUN, QUEUED, SKIPPED = FireOutcome.RUN, FireOutcome.QUEUED, FireOutcome.SKIPPED


async def fire(band: Orchestra, entry: RegisteredJob) -> Fired | None:
    return await band.database.transact(lambda session: schedules.fire_entry(session, entry.id, scheduled_run))


async def outcomes(band: Orchestra) -> list[FireOutcome]:
    return [fire.outcome for fire in await fires_of(band)]


# ---------------------------------------------------------------- firing


async def test_a_time_that_has_come_is_a_job(band: Orchestra) -> None:
    entry = await register(band)
    moment = await days_ago(band, 0)
    await come(band, moment)
    assert await band.database.read(schedules.due_entries) == [(moment, entry.id)]
    assert await fire(band, entry) == Fired("a", run=1, queued=0, skipped=0, missed=0)
    (fired,) = await fires_of(band)
    assert (fired.fire_at, fired.outcome, fired.backfill_id) == (moment, RUN, None)
    assert await band.ready_names() == ["plain"]
    next_run_at = (await entry_of(band)).next_run_at
    assert next_run_at == moment + timedelta(days=1)
    assert await band.database.read(schedules.due_entries) == []
    assert await band.violations() == []


async def test_what_is_not_due_does_not_fire(band: Orchestra) -> None:
    entry = await register(band)
    assert await fire(band, entry) is None
    off = await register(band, "b", enabled=False)
    await come(band, LONG_AGO, "b")
    assert await fire(band, off) is None
    assert await fire(band, await register(band, "c", None)) is None
    assert await count_jobs(band) == 0


async def test_a_time_that_is_written_down_does_not_fire_again(band: Orchestra) -> None:
    """As where the database's clock went back, or a schedule was changed and changed back."""
    entry = await register(band)
    for _ in range(2):
        await come(band, await days_ago(band, 0))
        await fire(band, entry)
    assert await count_jobs(band) == 1


async def test_the_key_refuses_what_the_lock_would_let_pass(band: Orchestra) -> None:
    entry = await register(band)

    async def note(session: Session) -> None:
        await schedules.note_fire(session, entry.id, LONG_AGO, RUN, None, LONG_AGO)

    await band.database.transact(note)
    with pytest.raises(IntegrityError):
        await band.database.transact(note)


@pytest.mark.parametrize(
    ("policy", "most", "run", "missed"),
    [("none", 10, 0, 4), ("latest", 10, 1, 3), ("all", 10, 4, 0), ("all", 2, 2, 2)],
)
async def test_three_days_without_a_leader(band: Orchestra, policy: str, most: int, run: int, missed: int) -> None:
    entry = await register(band, missed_runs=policy, missed_max=most)
    await come(band, await days_ago(band, 3))
    assert await fire(band, entry) == Fired("a", run=run, queued=0, skipped=0, missed=missed)
    assert await count_jobs(band) == run


async def test_pages_of_what_is_due_follow_each_other(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "AT_ONCE", 2)
    entries = [(await register(band, f"a{number}")).id for number in range(5)]
    for number, days in enumerate((1, 2, 1, 2, 1)):
        await come(band, await days_ago(band, days), f"a{number}")
    found: list[int] = []
    page = await band.database.read(schedules.due_entries)
    while page:
        found += [entry_id for _, entry_id in page]
        page = await band.database.read(partial(schedules.due_entries, after=page[-1]))
    assert found == [entries[number] for number in (1, 3, 0, 2, 4)]


# ---------------------------------------------------------------- overlap


async def test_a_time_is_skipped_while_an_earlier_run_goes_on(band: Orchestra) -> None:
    entry = await register(band, overlap="skip", missed_runs="all")
    await come(band, await days_ago(band, 2))
    assert await fire(band, entry) == Fired("a", run=1, queued=0, skipped=2, missed=0)
    assert await outcomes(band) == [RUN, SKIPPED, SKIPPED]


async def test_times_wait_for_an_earlier_run_and_run_in_their_order(band: Orchestra) -> None:
    entry = await register(band, overlap="queue", missed_runs="all")
    first = await days_ago(band, 2)
    await come(band, first)
    assert await fire(band, entry) == Fired("a", run=1, queued=2, skipped=0, missed=0)
    for expected in ([RUN, RUN, QUEUED], [RUN, RUN, RUN]):
        assert not await run_queued(band, entry)
        await band.complete(*await band.claim())
        assert await band.database.read(schedules.queued_entries) == [entry.id]
        assert await run_queued(band, entry)
        assert await outcomes(band) == expected
    await band.complete(*await band.claim())
    assert not await run_queued(band, entry)
    assert await band.database.read(schedules.queued_entries) == []
    assert len({fire.job_id for fire in await fires_of(band)}) == 3


async def run_queued(band: Orchestra, entry: RegisteredJob) -> bool:
    return await band.database.transact(lambda session: schedules.run_queued(session, entry.id, scheduled_run))


async def test_a_queue_does_not_grow_without_end(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "QUEUED_MAX", 1)
    entry = await register(band, overlap="queue", missed_runs="all")
    await come(band, await days_ago(band, 3))
    await fire(band, entry)
    assert await outcomes(band) == [RUN, QUEUED, SKIPPED, SKIPPED]


async def test_runs_by_hand_count_as_earlier_runs(band: Orchestra) -> None:
    entry = await register(band, overlap="skip")
    submission = scheduled_run(entry, LONG_AGO)
    await band.coordinator.submit(submission)
    await come(band, await days_ago(band, 0))
    await fire(band, entry)
    assert await outcomes(band) == [SKIPPED]


async def test_what_waits_runs_at_once_when_overlap_is_allowed_later(band: Orchestra) -> None:
    entry = await register(band, overlap="queue", missed_runs="all")
    await come(band, await days_ago(band, 1))
    await fire(band, entry)
    facts = {"name": "a", "overlap": "allow"}
    await upsert_registered_job(band.database, facts)
    assert await run_queued(band, entry)
    assert await outcomes(band) == [RUN, RUN]


async def test_the_times_of_an_entry_are_listed_the_latest_first(band: Orchestra) -> None:
    entry = await register(band, missed_runs="all")
    await come(band, await days_ago(band, 2))
    await fire(band, entry)
    latest = await band.database.read(lambda session: schedules.list_fires(session, entry.id, 2, 0))
    assert [fire.fire_at for fire in latest] == [await days_ago(band, 0), await days_ago(band, 1)]


# ---------------------------------------------------------------- two at once


@SERVERS
async def test_a_second_leader_waits_and_finds_nothing_left(band: Orchestra) -> None:
    entry = await register(band)
    await come(band, await days_ago(band, 0))
    async with band.transaction() as first:
        assert await schedules.fire_entry(first, entry.id, scheduled_run)
        second = asyncio.create_task(fire(band, entry))
        await band.until_waiting()
    assert await second is None
    assert await count_jobs(band) == 1


@SERVERS
async def test_when_the_first_leader_dies_the_second_fires(band: Orchestra) -> None:
    entry = await register(band)
    await come(band, await days_ago(band, 0))
    seconds: list[asyncio.Task[Fired | None]] = []

    async def die() -> None:
        async with band.transaction() as first:
            await schedules.fire_entry(first, entry.id, scheduled_run)
            seconds.append(asyncio.create_task(fire(band, entry)))
            await band.until_waiting()
            raise ConnectionError("died")

    with pytest.raises(ConnectionError, match="died"):
        await die()
    assert await seconds[0] == Fired("a", run=1, queued=0, skipped=0, missed=0)
    assert await count_jobs(band) == 1


@SERVERS
async def test_a_fire_that_waited_for_a_disable_does_not_fire(band: Orchestra) -> None:
    entry = await register(band)
    await come(band, await days_ago(band, 0))
    async with band.transaction() as disabling:
        await registered_jobs.set_enabled(disabling, "a", False)
        firing = asyncio.create_task(fire(band, entry))
        await band.until_waiting()
    assert await firing is None
    assert await count_jobs(band) == 0


@SERVERS
async def test_two_who_run_what_waits_run_it_once(band: Orchestra) -> None:
    entry = await register(band, overlap="queue", missed_runs="all")
    await come(band, await days_ago(band, 1))
    await fire(band, entry)
    await band.complete(*await band.claim())
    async with band.transaction() as first:
        assert await schedules.run_queued(first, entry.id, scheduled_run)
        second = asyncio.create_task(run_queued(band, entry))
        await band.until_waiting()
    assert not await second
    assert await count_jobs(band) == 2


async def test_a_run_stands_in_the_lanes_of_what_its_entry_says(band: Orchestra) -> None:
    """They were made when it was registered: a fire that holds locks makes none."""
    entry = await register(band, placement=needs_of({"where": "gpu == nvidia"}))
    made = await band.rows(select(lanes.c.id))
    await come(band, await days_ago(band, 0))
    assert await fire(band, entry) is not None
    assert await band.rows(select(lanes.c.id)) == made
    (job,), (task,) = await band.rows(select(jobs.c.lane)), await band.rows(select(tasks.c.lane))
    assert {job.lane, task.lane} == {row.id for row in made}
    assert job.lane != task.lane  # where runs are counted, each function has a lane of its own
