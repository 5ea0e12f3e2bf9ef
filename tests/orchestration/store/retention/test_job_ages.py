"""Jobs go when they were kept long enough, and not before; whoever clears one meanwhile keeps it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from aaiclick.errors import NotFound
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.rules.schedules.fires import BackfillStatus
from aaiclick.orchestration.store.moves.clears import clear_tasks, retry_failed_tasks
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.retention.job_ages import all_due, count_tables, due_jobs, mark_tables, remove_jobs
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import (
    backfills,
    events,
    gone_jobs,
    graph_locks,
    jobs,
    registered_jobs,
    ripples,
    table_context_refs,
    tasks,
)
from tests.support.band import SERVERS, band
from tests.support.orchestra import LONG_AGO, Orchestra, failing, make
from tests.support.tables import drop, hold, returned

__all__ = ["band"]

DAY_S = 86_400.0


async def change(band: Orchestra, *statements: Any) -> None:
    async def work(session: Session) -> None:
        for statement in statements:
            await session.run(statement)

    await band.database.transact(work)


async def grow_old(band: Orchestra) -> None:
    """All that happened is long past, and counted."""
    ended = update(jobs).where(jobs.c.completed_at.is_not(None)).values(completed_at=LONG_AGO, created_at=LONG_AGO)
    await change(band, ended, update(events).values(at=LONG_AGO))
    while await band.database.transact(metrics.count_settled):
        pass


async def ended_job(band: Orchestra, name: str = "job", **options: Any) -> Job:
    job = await band.submit(make("a"), name=name, **options)
    await band.drain()
    return job


async def left(band: Orchestra) -> set[int]:
    return {row.id for row in await band.rows(select(jobs.c.id))}


async def remove(band: Orchestra, ttl_s: float | None = DAY_S) -> int:
    return await band.database.transact(lambda session: remove_jobs(session, ttl_s))


async def test_what_ended_long_ago_goes_with_its_key(band: Orchestra) -> None:
    old = await ended_job(band, key="k")
    running = await band.submit(make("b"))
    await grow_old(band)
    young = await ended_job(band)
    await band.database.transact(metrics.count_settled)
    assert await remove(band) == 1
    assert await left(band) == {running.id, young.id}
    assert [row.job_id for row in await band.rows(select(gone_jobs.c.job_id))] == [old.id]
    again = await band.submit(make("a"), key="k")
    assert again.id != old.id


async def test_nothing_goes_that_the_metrics_have_not_counted(band: Orchestra) -> None:
    job = await ended_job(band)
    before = await band.database.read(metrics.read_metrics)
    await change(band, update(jobs).values(completed_at=LONG_AGO, created_at=LONG_AGO))
    assert await remove(band) == 0
    await change(band, update(jobs).values(started_at=LONG_AGO), update(events).values(at=LONG_AGO))
    while await band.database.transact(metrics.count_settled):
        pass
    assert await remove(band) == 1
    assert job.id not in await left(band)
    after = await band.database.read(metrics.read_metrics)
    assert after.counters == before.counters
    assert [each.count for each in after.histograms.values()] == [each.count for each in before.histograms.values()]


async def test_for_ever_is_for_ever(band: Orchestra) -> None:
    await ended_job(band)
    await grow_old(band)
    assert await remove(band, None) == 0
    assert await band.database.read(lambda session: all_due(session, None)) == []


async def test_an_entry_keeps_its_last_runs_however_old_and_no_others(band: Orchestra) -> None:
    made = [await ended_job(band, "nightly") for _ in range(4)]
    other = await ended_job(band)
    entry = {"id": 1, "name": "nightly", "entrypoint": "a.b", "default_kwargs": "{}", "keep_last": 2}
    entry |= {"created_at": LONG_AGO, "updated_at": LONG_AGO}
    nightly = update(jobs).where(jobs.c.name == "nightly")
    await change(band, insert(registered_jobs).values(entry), nightly.values(registered_job_id=1))
    await grow_old(band)
    assert await remove(band, None) == 2  # of equal age, the later ids are the last ones
    assert await left(band) == {made[2].id, made[3].id, other.id}
    assert await remove(band) == 1
    assert await left(band) == {made[2].id, made[3].id}
    running = await band.submit(make("a"), name="nightly")
    await change(band, nightly.where(jobs.c.id == running.id).values(registered_job_id=1))
    assert await remove(band) == 0  # one that runs takes nobody's place
    await change(band, update(registered_jobs).values(keep_last=None))
    assert await remove(band) == 2


async def test_no_run_goes_of_a_backfill_that_goes_on(band: Orchestra) -> None:
    job = await ended_job(band)
    row = {"id": 7, "registered_job_id": 1, "schedule": "@daily", "timezone": "UTC", "kwargs": "{}", "parallel_max": 1}
    times = dict.fromkeys(("start_at", "end_at", "next_at", "created_at"), LONG_AGO)
    going_on = insert(backfills).values(row | times | {"status": BackfillStatus.RUNNING})
    await change(band, going_on, update(jobs).values(backfill_id=7))
    await grow_old(band)
    assert await remove(band) == 0
    await change(band, update(backfills).values(status=BackfillStatus.COMPLETED))
    assert await remove(band) == 1
    assert job.id not in await left(band)


async def test_what_is_not_told_downstream_yet_keeps_its_job(band: Orchestra) -> None:
    job = await ended_job(band)
    row = {"id": 1, "job_id": job.id, "kind": "release", "node_id": 1, "node_type": "task"}
    await change(band, insert(ripples).values(row))
    await grow_old(band)
    assert await remove(band) == 0


async def test_its_tables_go_with_it(band: Orchestra) -> None:
    job = await band.submit(make("a"), preservation_mode="full")
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    await grow_old(band)
    assert await band.database.read(lambda session: count_tables(session, [job.id])) == 1
    assert await remove(band) == 0  # not before its tables
    assert await band.database.transact(lambda session: mark_tables(session, DAY_S)) == 1
    assert await remove(band) == 1
    assert await drop(band) == {table}
    assert await band.rows(select(table_context_refs.c.table_name)) == []


async def test_a_table_that_another_job_reads_keeps_the_job(band: Orchestra) -> None:
    job = await band.submit(make("a"), preservation_mode="full")
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    reader = make("reader", kwargs={"x": {"object_type": "object", "table": table}})
    await band.submit(reader)
    (reading,) = await band.claim()
    await grow_old(band)
    assert await band.database.transact(lambda session: mark_tables(session, DAY_S)) == 0
    assert await remove(band) == 0
    await band.complete(reading)
    assert await band.database.transact(lambda session: mark_tables(session, DAY_S)) == 1
    assert job.id in await band.database.read(lambda session: due_jobs(session, DAY_S))


# ---------------------------------------------------------------- meanwhile


async def test_a_task_of_a_job_that_is_gone_cannot_be_cleared(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    await band.drain(failing("a"))
    (task,) = [row.id for row in await band.rows(select(tasks.c.id).where(tasks.c.job_id == job.id))]
    await grow_old(band)
    assert await remove(band) == 1
    for dry_run in (True, False):
        with pytest.raises(NotFound):
            await band.database.transact(partial(clear_tasks, task_ids=[task], dry_run=dry_run))
        with pytest.raises(NotFound):
            await band.database.transact(partial(retry_failed_tasks, job_id=job.id, dry_run=dry_run))
    assert await band.claim() == []


@SERVERS
async def test_a_job_that_is_being_cleared_is_left_alone(band: Orchestra) -> None:
    a = make("a")
    job = await band.submit(a)
    await band.drain()
    await grow_old(band)
    async with band.transaction() as session:
        await clear_tasks(session, [a.id])
        assert await remove(band) == 0  # it does not wait
    assert await remove(band) == 0
    assert await left(band) == {job.id}
    await band.drain()
    assert await band.violations() == []


@SERVERS
async def test_who_clears_a_job_that_is_going_finds_it_gone(band: Orchestra) -> None:
    a = make("a")
    await band.submit(a)
    await band.drain()
    await grow_old(band)
    async with band.transaction() as session:
        assert await remove_jobs(session, DAY_S) == 1
        clearing = asyncio.create_task(band.database.transact(lambda other: clear_tasks(other, [a.id])))
        await band.until_waiting()
    with pytest.raises(NotFound):
        await clearing
    assert await band.claim() == []


@SERVERS
async def test_two_at_once_wait_for_nobody(band: Orchestra) -> None:
    for _ in range(3):
        await ended_job(band)
    await grow_old(band)
    async with band.transaction() as session:
        assert await remove_jobs(session, DAY_S) == 3
        assert await remove(band) == 0
    assert await remove(band) == 0
    assert len(await band.rows(select(gone_jobs.c.job_id))) == 3
    assert await band.rows(select(graph_locks.c.job_id)) == []
