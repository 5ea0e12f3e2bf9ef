"""What there is to do, in one question."""

from __future__ import annotations

from functools import partial

from sqlalchemy import delete, event, insert, update

from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.pending_work import look_for_work
from aaiclick.orchestration.store.tables import ripples, workers
from tests.support.band import band
from tests.support.catalogue import come, register
from tests.support.chores import chores
from tests.support.orchestra import LONG_AGO, Orchestra, make

__all__ = ["band"]


async def test_nothing(band: Orchestra) -> None:
    await band.submit(make("a"))
    await band.claim()
    assert await chores(band) == {}


async def test_sessions_and_what_they_leave(band: Orchestra) -> None:
    await band.submit(make("a"))
    await band.claim()
    await band.database.transact(lambda session: session.run(update(workers).values(expires_at=LONG_AGO)))
    assert await chores(band) == {"end_dead_sessions": 0}
    await band.coordinator.deregister(band.worker)
    assert await chores(band) == {"recover_lost_runs": 0}
    await band.database.transact(lambda session: session.run(delete(workers)))
    assert await chores(band) == {"recover_lost_runs": 0}


async def test_delayed_tasks(band: Orchestra) -> None:
    await band.submit(make("a", retry=RetryPolicy(max_retries=1, delay_s=100, delay_s_max=100, jitter=False)))
    await band.fail(*await band.claim())
    due_s = (await chores(band))["promote_due_tasks"]
    assert 50 < due_s <= 100
    await band.let_time_pass()
    assert await chores(band) == {"promote_due_tasks": 0}


async def test_ripples_limits_and_reserved_jobs(band: Orchestra) -> None:
    row = {"id": 1, "job_id": 1, "kind": "release", "node_id": 1, "node_type": "node", "after_id": 0}
    await band.database.transact(lambda session: session.run(insert(ripples).values(row)))
    assert await chores(band) == {"work_off_ripples": 0}
    await band.database.transact(lambda session: session.run(delete(ripples)))
    job = await band.submit(make("a"), timeout_s=1000)
    assert await chores(band) == {}
    await band.coordinator.reserve(job.id, band.worker)
    assert await chores(band) == {"end_abandoned_jobs": 0}
    await band.claim(reserved_for=band.worker)
    assert await chores(band) == {"end_abandoned_jobs": 0, "end_overdue_jobs": 0}


async def test_schedules(band: Orchestra) -> None:
    await register(band)
    assert 0 < (await chores(band))["fire_schedules"] < 86400
    await come(band, LONG_AGO)
    assert await chores(band) == {"fire_schedules": 0}


async def test_it_is_one_statement_and_nobody_need_ask_anything(band: Orchestra) -> None:
    told: list[str] = []
    event.listen(band.database.engine.sync_engine, "before_cursor_execute", lambda *facts: told.append(facts[2]))
    assert await chores(band) == {}
    assert len(told) == 1
    assert await band.database.read(partial(look_for_work, questions={})) == {}
