"""Counting from the events, each once, on each of the three databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, event, func, insert, select, update

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.rules.metrics import ALL, Metrics
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, jobs, ready, runs, tasks, workers
from aaiclick.orchestration.store.tables import metrics as table
from tests.support.band import SERVERS
from tests.support.band import band as band
from tests.support.orchestra import LONG_AGO, Orchestra, failing, make

NOTHING = {
    "jobs_created_total": 0,
    "jobs_completed_total": 0,
    "jobs_failed_total": 0,
    "tasks_created_total": 0,
    "tasks_completed_total": 0,
    "tasks_failed_total": 0,
    "task_late_reports_total": 0,
    **dict.fromkeys(("task_cache_hits_total", "task_cache_misses_total"), 0),
    **dict.fromkeys(("expectations_warned_total", "expectations_failed_total"), 0),
}


async def shown(band: Orchestra) -> Metrics:
    return await band.database.read(metrics.read_metrics)


async def settle(band: Orchestra) -> int:
    """Let all events be old, and count them for good."""
    await change(band, update(events).values(at=LONG_AGO))
    total = 0
    while moved := await band.database.transact(metrics.count_settled):
        total += moved
    return total


async def change(band: Orchestra, *statements: Any) -> None:
    async def work(session: Session) -> None:
        for statement in statements:
            await session.run(statement)

    await band.database.transact(work)


async def stored(band: Orchestra) -> dict[str, int]:
    """What is counted for good, but for the buckets."""
    rows = await band.rows(select(table).where(table.c.bucket == ""))
    return {row.name: row.number for row in rows}


@contextmanager
def statements(band: Orchestra) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(*told: Any) -> None:
        seen.append(told[2])

    engine = getattr(band.database.engine, "sync_engine", band.database.engine)
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


# ---------------------------------------------------------------- counters


async def test_where_nothing_happened_all_is_zero(band: Orchestra) -> None:
    found = await shown(band)
    assert dict(found.counters) == NOTHING
    assert [histogram.count for histogram in found.histograms.values()] == [0, 0]
    assert (found.queue_depth, found.workers_active) == (0, 1)
    assert not await band.database.read(metrics.is_behind)
    assert await band.database.transact(metrics.count_settled) == 0


async def test_jobs_and_tasks_are_counted_as_they_come_and_end(band: Orchestra) -> None:
    good, bad, last = make("good"), make("bad"), make("last")
    bad >> last
    await band.submit(good)
    await band.submit(bad, last)
    found = await shown(band)
    assert dict(found.counters) == NOTHING | {"jobs_created_total": 2, "tasks_created_total": 3}
    await band.drain(failing("bad"))
    found = await shown(band)
    assert dict(found.counters) == NOTHING | {
        "jobs_created_total": 2,
        "jobs_completed_total": 1,
        "jobs_failed_total": 1,
        "tasks_created_total": 3,
        "tasks_completed_total": 1,
        "tasks_failed_total": 1,
    }


async def test_tasks_that_come_later_are_counted(band: Orchestra) -> None:
    job = await band.submit(make("first"))
    await band.apply(job, make("second"), make("third"))
    assert (await shown(band)).counters["tasks_created_total"] == 3
    assert await band.violations(at_rest=False) == []


async def test_an_attempt_that_is_tried_again_has_not_failed(band: Orchestra) -> None:
    await band.submit(make(max_retries=1))
    await band.fail(*await band.claim())
    assert (await shown(band)).counters["tasks_failed_total"] == 0
    assert (await shown(band)).histograms["task_duration_seconds"].count == 1
    await band.drain(failing("t"))
    assert (await shown(band)).counters["tasks_failed_total"] == 1
    assert (await shown(band)).histograms["task_duration_seconds"].count == 2


async def test_what_is_counted_for_good_and_what_is_not_yet_are_shown_together(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    await band.drain()
    before = await shown(band)
    assert await settle(band) > 0
    assert await stored(band) == {
        "horizon": await band.scalar(select(func.max(events.c.id))),
        "jobs_created_total": 1,
        "jobs_completed_total": 1,
        "tasks_created_total": 2,
        "tasks_completed_total": 2,
    }
    assert (await shown(band)).counters == before.counters
    await band.submit(make("c"))
    assert (await shown(band)).counters["tasks_created_total"] == 3
    await settle(band)
    assert (await shown(band)).counters["tasks_created_total"] == 3


async def test_counters_stay_when_events_and_jobs_are_gone(band: Orchestra) -> None:
    await band.submit(make())
    await band.drain()
    await settle(band)
    before = await shown(band)
    await change(band, *(delete(each) for each in (events, jobs, tasks, runs)))
    after = await shown(band)
    assert (after.counters, after.histograms) == (before.counters, before.histograms)
    assert before.counters["tasks_completed_total"] == 1


async def test_an_old_create_event_without_a_number_of_tasks(band: Orchestra) -> None:
    await band.submit(make())
    await change(band, update(events).values(detail=None))
    assert (await shown(band)).counters["jobs_created_total"] == 1
    assert (await shown(band)).counters["tasks_created_total"] == 0


# ---------------------------------------------------------------- the horizon


async def test_young_events_are_not_counted_for_good(band: Orchestra) -> None:
    await band.submit(make())
    assert await band.database.read(metrics.is_behind)
    assert await band.database.transact(metrics.count_settled) == 0
    await settle(band)
    assert not await band.database.read(metrics.is_behind)


async def test_counting_stops_at_the_first_young_event(band: Orchestra) -> None:
    for name in ("a", "b", "c"):
        await band.submit(make(name))
    first, middle, _ = [row.id for row in await band.rows(select(events.c.id).order_by(events.c.id))]
    await change(band, update(events).where(events.c.id != middle).values(at=LONG_AGO))
    await band.database.transact(metrics.count_settled)
    assert await stored(band) == {"horizon": first, "jobs_created_total": 1, "tasks_created_total": 1}


async def test_an_event_that_is_committed_late_is_counted(band: Orchestra) -> None:
    """Its id is below one that is there already: the horizon must not have passed it."""
    for name in ("a", "b", "c"):
        await band.submit(make(name))
    first, late, _ = await band.rows(select(events).order_by(events.c.id))
    await change(band, delete(events).where(events.c.id == late.id))
    await change(band, update(events).where(events.c.id == first.id).values(at=LONG_AGO))
    await band.database.transact(metrics.count_settled)
    assert (await stored(band))["horizon"] == first.id
    await change(band, insert(events).values(**late._mapping))
    await settle(band)
    assert (await shown(band)).counters["jobs_created_total"] == 3


async def test_under_load_events_settle_sooner(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "WINDOW", 3)
    for name in ("a", "b", "c", "d"):
        await band.submit(make(name))

    async def age(session: Session) -> None:
        minute_ago = await session.now() - timedelta(minutes=1)
        await session.run(update(events).values(at=minute_ago))

    await band.database.transact(age)
    assert await band.database.transact(metrics.count_settled) > 0
    newest = await band.scalar(select(func.max(events.c.id)))
    await change(band, delete(table), delete(events).where(events.c.id < newest))
    assert await band.database.transact(metrics.count_settled) == 0


async def test_one_transaction_counts_a_bounded_number(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "STEP", 2)
    for number in range(5):
        await band.submit(make(f"t{number}"))
    await change(band, update(events).values(at=LONG_AGO))
    moved = []
    while step := await band.database.transact(metrics.count_settled):
        moved.append(step)
    assert len(moved) == 3
    assert (await stored(band))["jobs_created_total"] == 5


async def test_a_gap_in_the_ids_is_stepped_over(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    await band.submit(make())
    await change(band, update(events).values(id=10**12, at=LONG_AGO))
    assert (await shown(band)).counters["jobs_created_total"] == 1
    await band.database.transact(metrics.count_settled)
    assert (await stored(band))["horizon"] == 10**12


@SERVERS
async def test_two_who_count_at_once_count_once(band: Orchestra) -> None:
    await band.submit(make())
    await change(band, update(events).values(at=LONG_AGO))
    await band.database.transact(metrics.count_settled)
    await band.submit(make())
    await change(band, update(events).values(at=LONG_AGO))
    async with band.transaction() as first, band.transaction() as second:
        await metrics.count_settled(first)
        other = asyncio.create_task(metrics.count_settled(second))
        await band.until_waiting()
        await session_commit(band, first)
        assert await other == 0
    assert (await stored(band))["jobs_created_total"] == 2


async def session_commit(band: Orchestra, session: Session) -> None:
    """Commit in the middle; the transaction that follows is empty."""
    await band.database.dialect.command(session.connection, "COMMIT")
    await band.database.dialect.command(session.connection, band.database.dialect.begin)


async def test_of_very_many_events_some_are_shown_later(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SHOWN_MAX", 2)
    await band.submit(make("t"))
    await settle(band)
    for number in range(5):
        await band.submit(make(f"t{number}"))
    assert (await shown(band)).counters["jobs_created_total"] == 3
    await settle(band)
    assert (await shown(band)).counters["jobs_created_total"] == 6


async def test_a_number_does_not_fall_when_an_event_is_committed_late(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    await band.submit(make("t"))
    await settle(band)
    for number in range(4):
        await band.submit(make(f"t{number}"))
    horizon = (await stored(band))["horizon"]
    (late, *_) = await band.rows(select(events).where(events.c.id > horizon).order_by(events.c.id))
    await change(band, delete(events).where(events.c.id == late.id))
    monkeypatch.setattr(metrics, "SHOWN_MAX", 2)
    before = (await shown(band)).counters["jobs_created_total"]
    await change(band, insert(events).values(**late._mapping))
    assert (await shown(band)).counters["jobs_created_total"] == before + 1


async def test_of_many_events_some_are_measured_later(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MEASURED_MAX", 1)
    await band.submit(make("a"), make("b"))
    await band.drain()
    assert (await shown(band)).counters["tasks_completed_total"] == 2
    assert (await shown(band)).histograms["task_duration_seconds"].count == 0
    await settle(band)
    assert (await shown(band)).histograms["task_duration_seconds"].count == 2


@pytest.mark.parametrize("gap", [900, 5_000, 50_000])
async def test_what_is_behind_ids_that_were_never_used_is_measured(band: Orchestra, gap: int) -> None:
    await band.submit(make("a"), make("b"))
    await band.drain()
    await change(band, update(events).values(id=events.c.id + gap))
    assert (await shown(band)).histograms["task_duration_seconds"].count == 2


# ---------------------------------------------------------------- durations


async def test_durations_fall_into_their_buckets(band: Orchestra) -> None:
    await band.submit(*(make(f"t{number}") for number in range(3)))
    await band.drain()

    async def lengthen(session: Session) -> None:
        end = await session.now()
        for row, took_s in zip(await session.rows(select(runs.c.task_id)), (0.02, 2.5, 100_000), strict=True):
            began = end - timedelta(seconds=took_s)
            times = {"claimed_at": began, "ended_at": end}
            await session.run(update(runs).where(runs.c.task_id == row.task_id).values(**times))
        await session.run(update(jobs).values(started_at=end - timedelta(seconds=70)))
        await session.run(update(events).values(at=LONG_AGO))
        last = (events.c.task_id.is_(None), events.c.move == "complete")
        await session.run(update(events).where(*last).values(at=end))

    await band.database.transact(lengthen)
    for _ in range(2):
        found = (await shown(band)).histograms
        took = found["task_duration_seconds"]
        assert [took.buckets[limit] for limit in (0.01, 0.05, 1.0, 5.0, 14400.0)] == [0, 1, 1, 2, 2]
        assert took.count == 3
        assert took.total_s == pytest.approx(100_002.52, abs=0.01)
        took = found["job_duration_seconds"]
        assert [took.buckets[limit] for limit in (60.0, 300.0)] == [0, 1]
        assert took.count == 1
        assert took.total_s == pytest.approx(70, abs=0.01)
        await band.database.transact(metrics.count_settled)
    assert ("task_duration_seconds", ALL) in [(row.name, row.bucket) for row in await band.rows(select(table))]


async def test_a_job_that_is_cleared_keeps_how_long_its_runs_took(band: Orchestra) -> None:
    task = make()
    await band.submit(task)
    for took_s, total_s in ((70, 70), (30, 100)):
        await band.drain()
        ended = await band.scalar(select(jobs.c.completed_at))
        await change(band, update(jobs).values(started_at=ended - timedelta(seconds=took_s)))
        before = (await shown(band)).histograms["job_duration_seconds"]
        assert before.total_s == pytest.approx(total_s, abs=0.01)
        await band.database.transact(lambda session: clear_tasks(session, [task.id]))
        after = (await shown(band)).histograms["job_duration_seconds"]
        assert (after.count, after.buckets) == (before.count, before.buckets)
        assert after.total_s == pytest.approx(before.total_s, abs=0.001)
        await change(band, update(events).values(at=LONG_AGO))
    after = (await shown(band)).histograms["job_duration_seconds"]
    assert (after.count, after.buckets[15.0], after.buckets[60.0], after.buckets[300.0]) == (2, 0, 1, 2)


# ---------------------------------------------------------------- what is, and its cost


async def test_the_queue_is_counted_up_to_a_limit(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    await band.submit(*(make(f"t{number}") for number in range(5)))
    assert (await shown(band)).queue_depth == 5
    monkeypatch.setattr(metrics, "QUEUE_COUNTED_MAX", 3)
    assert (await shown(band)).queue_depth == 3
    await change(band, delete(ready))
    assert (await shown(band)).queue_depth == 0


async def test_live_workers_with_their_age_and_their_oldest_task(band: Orchestra) -> None:
    other = await band.coordinator.register(hostname="there", pid=2)
    gone = await band.coordinator.register(hostname="gone", pid=3)
    stopped = await band.coordinator.register(hostname="stopped", pid=4)
    await band.submit(make("a"), make("b"))
    first, _ = await band.claim()

    async def age(session: Session) -> None:
        now = await session.now()
        old = update(tasks).where(tasks.c.id == first.task_id)
        await session.run(old.values(claimed_at=now - timedelta(hours=1)))
        beaten = update(workers).where(workers.c.id == other.id)
        await session.run(beaten.values(last_heartbeat=now - timedelta(seconds=20)))
        await session.run(update(workers).where(workers.c.id == gone.id).values(expires_at=LONG_AGO))
        await session.run(update(workers).where(workers.c.id == stopped.id).values(status=WorkerStatus.STOPPED))

    await band.database.transact(age)
    found = await shown(band)
    assert found.workers_active == 2
    here, there = found.workers
    assert (here.worker_id, here.hostname, there.hostname) == (band.worker, "here", "there")
    assert here.execution_time_s == pytest.approx(3600, abs=60)
    assert there.execution_time_s == 0
    assert there.heartbeat_age_s == pytest.approx(20, abs=15)


async def test_the_number_of_statements_does_not_grow(band: Orchestra) -> None:
    numbers = []
    for size in (1, 30):
        await band.submit(*(make(f"t{number}") for number in range(size)))
        await band.drain()
        with statements(band) as seen:
            await shown(band)
        numbers.append(len(seen))
    assert numbers[0] == numbers[1] <= 15
