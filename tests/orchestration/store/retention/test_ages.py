"""Times of schedules, backfills, workers and entries of the audit that are too old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.schedules.fires import BackfillStatus, FireOutcome
from aaiclick.orchestration.store.claims.recoveries import abandoned_jobs
from aaiclick.orchestration.store.definitions.access_tables import audit
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.retention import ages
from aaiclick.orchestration.store.schedules.firing import fire_entry, note_fire
from aaiclick.orchestration.store.tables import backfills, fires, jobs, registered_jobs, workers
from tests.orchestration.store.retention.test_job_ages import change
from tests.support.band import SERVERS, band
from tests.support.catalogue import come, fires_of, register
from tests.support.orchestra import LONG_AGO, Orchestra, make

__all__ = ["band"]

DAY_S = 86_400.0


async def prune(band: Orchestra, step: Any, ttl_s: float = DAY_S) -> int:
    return await band.database.transact(lambda session: step(session, ttl_s))


async def count(band: Orchestra, question: Any, ttl_s: float = DAY_S) -> int:
    return await band.database.read(lambda session: question(session, ttl_s))


async def note(band: Orchestra, entry_id: int, *times: datetime, **facts: Any) -> None:
    for time in times:
        known: dict[str, Any] = {"outcome": FireOutcome.RUN, "job_id": None, "now": LONG_AGO, **facts}
        await band.database.transact(partial(note_fire, entry_id=entry_id, fire_at=time, **known))


async def times(band: Orchestra) -> list[datetime]:
    return [fire.fire_at for fire in await fires_of(band)]


OLD = [datetime(2021, 1, day, 8, tzinfo=UTC) for day in range(1, 6)]


async def test_old_times_go_in_steps(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ages, "STEP", 2)
    entry = await register(band)
    await note(band, entry.id, *OLD)
    assert await count(band, ages.count_fires) == 5
    assert [await prune(band, ages.prune_fires) for _ in range(4)] == [2, 2, 1, 0]
    assert await times(band) == []


async def test_times_that_someone_asks_for_stay(band: Orchestra) -> None:
    entry = await register(band)
    job = await band.submit(make("a"))
    await note(band, entry.id, OLD[0], outcome=FireOutcome.QUEUED)
    await note(band, entry.id, OLD[1], job_id=job.id)
    await note(band, entry.id, OLD[2], now=datetime.now(UTC))  # of a backfill, lately
    assert await prune(band, ages.prune_fires) == await count(band, ages.count_fires) == 0
    await band.drain()
    await note(band, entry.id, OLD[3])
    row = {"id": 7, "registered_job_id": entry.id, "schedule": "@daily", "timezone": "UTC", "kwargs": "{}"}
    row |= dict.fromkeys(("start_at", "end_at", "next_at", "created_at", "completed_at"), LONG_AGO)
    await change(band, insert(backfills).values(row | {"status": BackfillStatus.RUNNING, "parallel_max": 1}))
    assert await prune(band, ages.prune_fires) == await count(band, ages.count_fires) == 0
    assert await prune(band, ages.prune_backfills) == 0
    await change(band, update(backfills).values(status=BackfillStatus.FAILED))
    assert await prune(band, ages.prune_fires) == 2
    assert await times(band) == [OLD[0], OLD[2]]


async def test_a_time_that_can_fire_again_by_itself_stays(band: Orchestra) -> None:
    """A schedule that nobody fired for long: what is from its next time on may be noted, and fires."""
    entry = await register(band)
    await come(band, OLD[2])
    await note(band, entry.id, *OLD)
    assert await prune(band, ages.prune_fires) == 2
    assert await times(band) == OLD[2:]


async def test_what_was_forgotten_does_not_fire_again(band: Orchestra) -> None:
    entry = await register(band)
    await come(band, OLD[0])
    await note(band, entry.id, *OLD[:2])
    fired = await band.database.transact(lambda session: fire_entry(session, entry.id, build))
    assert fired is not None
    before = await times(band)
    await change(band, update(fires).values(created_at=LONG_AGO))
    await change(band, update(jobs).values(status="completed", open_tasks=0))
    assert await prune(band, ages.prune_fires) > 0
    assert await band.database.transact(lambda session: fire_entry(session, entry.id, build)) is None
    assert len(await times(band)) < len(before)


def build(entry: Any, fire_at: datetime) -> Any:
    from aaiclick.orchestration.registered_jobs import scheduled_run

    return scheduled_run(entry, fire_at)


async def test_backfills_go_after_their_runs(band: Orchestra) -> None:
    row = {"id": 7, "registered_job_id": 1, "schedule": "@daily", "timezone": "UTC", "kwargs": "{}", "parallel_max": 1}
    row |= dict.fromkeys(("start_at", "end_at", "next_at", "created_at", "completed_at"), LONG_AGO)
    job = await band.submit(make("a"))
    await change(
        band,
        insert(backfills).values(row | {"status": BackfillStatus.COMPLETED}),
        update(jobs).where(jobs.c.id == job.id).values(backfill_id=7),
    )
    assert await prune(band, ages.prune_backfills) == await count(band, ages.count_backfills) == 0
    await change(band, update(jobs).values(backfill_id=None))
    assert await count(band, ages.count_backfills) == 1
    assert await prune(band, ages.prune_backfills) == 1


async def test_workers_that_stopped_long_ago_go(band: Orchestra) -> None:
    gone = await band.coordinator.register(hostname="there", pid=2)
    assert await prune(band, ages.prune_workers) == 0
    old = {"last_heartbeat": LONG_AGO, "expires_at": LONG_AGO}
    await change(band, update(workers).values(old))
    assert await prune(band, ages.prune_workers) == 0  # their sessions were not ended
    await change(band, update(workers).where(workers.c.id == gone.id).values(status=WorkerStatus.STOPPED))
    assert await count(band, ages.count_workers) == 1
    assert await prune(band, ages.prune_workers) == 1
    assert [row.id for row in await band.rows(select(workers.c.id))] == [band.worker]
    assert not (await band.coordinator.beat(gone.id)).alive


async def test_a_worker_stays_while_something_is_to_be_taken_from_it(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    kept = await band.submit(make("b"))
    keeper = await band.coordinator.register(hostname="there", pid=2)
    stopped = {"last_heartbeat": LONG_AGO, "expires_at": LONG_AGO, "status": WorkerStatus.STOPPED}
    mine = update(jobs).where(jobs.c.id == kept.id).values(reserved_for=keeper.id)
    await change(band, update(workers).values(stopped), mine)
    assert await prune(band, ages.prune_workers) == 0
    assert await band.database.read(abandoned_jobs) == [kept.id]
    await band.complete(claim)
    await band.coordinator.cancel(kept.id)
    assert await prune(band, ages.prune_workers) == 2


async def test_nodes_go_once_no_worker_is_left_unless_their_state_would_be_forgotten(band: Orchestra) -> None:
    for name, state in (("open", "open"), ("closed", "cordoned"), ("alive", "open"), ("new", "open")):
        worker = await band.coordinator.register(hostname="there", pid=2, node=NodeDescription(name))
        old = (
            update(nodes).where(nodes.c.name == name, nodes.c.name != "new").values(described_at=LONG_AGO, state=state)
        )
        stopped = {"last_heartbeat": LONG_AGO, "expires_at": LONG_AGO, "status": WorkerStatus.STOPPED}
        await change(band, old)
        if name != "alive":
            await change(band, update(workers).where(workers.c.id == worker.id).values(stopped))
    assert await count(band, ages.count_nodes) == await prune(band, ages.prune_nodes) == 0  # workers are left
    assert await prune(band, ages.prune_workers) == 3
    assert await count(band, ages.count_nodes) == await prune(band, ages.prune_nodes) == 1
    assert sorted([row.name for row in await band.rows(select(nodes.c.name))]) == ["alive", "closed", "new"]


@SERVERS
async def test_a_worker_that_is_being_asked_to_drain_is_not_waited_for(band: Orchestra) -> None:
    stopped = {"last_heartbeat": LONG_AGO, "expires_at": LONG_AGO, "status": WorkerStatus.STOPPED}
    await change(band, update(workers).values(stopped))
    async with band.transaction() as session:
        await session.rows(select(workers.c.id).with_for_update())
        assert await prune(band, ages.prune_workers) == 0
    assert await prune(band, ages.prune_workers) == 1


async def test_the_oldest_entries_of_the_audit_go(band: Orchestra) -> None:
    now = datetime.now(UTC)
    rows = [
        {"id": number, "at": now - timedelta(days=days), "actor": "a", "verb": "v", "target": "t"}
        for number, days in enumerate((3, 2, 0, 2), 1)
    ]
    await change(band, insert(audit).values(rows))
    assert await count(band, ages.count_audit) == 2
    assert await prune(band, ages.prune_audit) == 2
    assert [row.id for row in await band.rows(select(audit.c.id).order_by(audit.c.id))] == [3, 4]
    assert await prune(band, ages.prune_audit) == 0


async def test_there_may_be_no_entry_at_all(band: Orchestra) -> None:
    assert await band.rows(select(registered_jobs.c.id)) == []
    for step in (ages.prune_fires, ages.prune_backfills, ages.prune_workers, ages.prune_audit):
        assert await prune(band, step) == 0
