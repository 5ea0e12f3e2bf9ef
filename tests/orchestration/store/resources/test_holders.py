"""Who holds resources without a claim: bodies that may go on, workers that are gone, and what was forgotten."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from aaiclick.orchestration.control import repairs
from aaiclick.orchestration.models import Held
from aaiclick.orchestration.store import workers as worker_sessions
from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants
from aaiclick.orchestration.store.resources.holders import unlisted_holders
from tests.support.band import band
from tests.support.grants import begin, held, lanes_of, one
from tests.support.orchestra import Orchestra, expire, make

__all__ = ["band"]


async def test_a_cancelled_body_of_a_lost_worker_is_freed_by_the_leader(band: Orchestra) -> None:
    taken = await one(band)
    await band.coordinator.cancel(taken.job_id)
    assert await repairs.free_stray_grants(band.database) == 0
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    assert await repairs.free_stray_grants(band.database) == 1
    assert await held(band) == {}


async def test_a_worker_that_never_heard_of_its_claim_holds_nothing_for_ever(band: Orchestra) -> None:
    """The answer was lost, and the task cancelled: the heartbeat says that nobody runs it."""
    await begin(band, gpu=1)
    await band.submit(make(resources={"gpu": 1}))
    lanes = await lanes_of(band)
    (taken,) = await band.coordinator.claim(band.worker, limit=1, lanes=lanes, call=4, begins=1)
    await band.coordinator.cancel(taken.job_id)
    database, run = band.database, Held(taken.task_id, taken.epoch)
    assert await database.read(lambda session: unlisted_holders(session, band.worker, 3)) == set()
    for known, listed, left in ((3, [], 1), (4, [run], 1), (4, [], 0)):
        band.coordinator._freed_for[band.worker] = float("-inf")
        await band.coordinator.beat(band.worker, known_call=known, held=listed)
        assert len(await held(band)) == left


async def test_a_grant_that_was_forgotten_is_freed_and_said(band: Orchestra, caplog: pytest.LogCaptureFixture) -> None:
    taken = await one(band)
    assert await repairs.free_leaked_grants(band.database) == 0
    async with band.transaction() as session:
        kept = await session.rows(select(resource_grants))
    await band.complete(taken)
    await band.database.transact(lambda session: session.insert(resource_grants, [dict(row._mapping) for row in kept]))
    assert await repairs.free_leaked_grants(band.database) == 1
    assert "still held resources" in caplog.text
    assert await held(band) == {}
