"""What there is to do, in one question."""

from __future__ import annotations

from sqlalchemy import delete, insert, update

from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.chores import Chores, look_for_chores
from aaiclick.orchestration.store.tables import ripples, workers
from tests.support.band import band
from tests.support.catalogue import come, register
from tests.support.orchestra import LONG_AGO, Orchestra, make

__all__ = ["band"]

NOTHING = Chores(False, False, False, False, False, False, False, False, None)


async def look(band: Orchestra) -> Chores:
    return await band.database.read(look_for_chores)


async def test_nothing(band: Orchestra) -> None:
    await band.submit(make("a"))
    await band.claim()
    assert await look(band) == NOTHING


async def test_sessions_and_what_they_leave(band: Orchestra) -> None:
    await band.submit(make("a"))
    await band.claim()
    await band.database.transact(lambda session: session.run(update(workers).values(expires_at=LONG_AGO)))
    assert await look(band) == NOTHING._replace(sessions=True)
    await band.coordinator.deregister(band.worker)
    assert await look(band) == NOTHING._replace(orphans=True)
    await band.database.transact(lambda session: session.run(delete(workers)))
    assert await look(band) == NOTHING._replace(orphans=True)


async def test_delayed_tasks(band: Orchestra) -> None:
    await band.submit(make("a", retry=RetryPolicy(max_retries=1, delay_s=100, delay_s_max=100, jitter=False)))
    await band.fail(*await band.claim())
    due_s = (await look(band)).due_s
    assert due_s is not None
    assert 50 < due_s <= 100
    await band.let_time_pass()
    assert await look(band) == NOTHING._replace(due_s=0)


async def test_ripples_limits_and_reserved_jobs(band: Orchestra) -> None:
    row = {"id": 1, "job_id": 1, "kind": "release", "node_id": 1, "node_type": "node", "after_id": 0}
    await band.database.transact(lambda session: session.run(insert(ripples).values(row)))
    assert await look(band) == NOTHING._replace(ripples=True)
    await band.database.transact(lambda session: session.run(delete(ripples)))
    job = await band.submit(make("a"), timeout_s=1000)
    assert await look(band) == NOTHING
    await band.coordinator.reserve(job.id, band.worker)
    assert await look(band) == NOTHING._replace(reserved=True)
    await band.claim(reserved_for=band.worker)
    assert await look(band) == NOTHING._replace(reserved=True, limits=True)


async def test_schedules(band: Orchestra) -> None:
    await register(band)
    found = await look(band)
    assert not found.schedules
    assert found.fire_s is not None
    assert 0 < found.fire_s < 86400
    await come(band, LONG_AGO)
    assert await look(band) == NOTHING._replace(schedules=True, fire_s=0.0)
