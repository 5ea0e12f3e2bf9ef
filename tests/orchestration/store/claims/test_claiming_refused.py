"""Claims of whoever has no live session: refused, without a lock on anybody's row."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aaiclick.errors import Conflict, SessionOver
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.claims.recoveries import recover_claims
from aaiclick.orchestration.store.dialects import postgres
from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.workers import drain_worker, renew_session, stop_worker
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, expire, make, more_workers

__all__ = ["band"]

OPTIONS: dict[str, Any] = {"reserved_for": 0, "limit": 1, "after": None, "started": set()}


@pytest.mark.parametrize("ready_names", [[], ["a"]])
async def test_whoever_has_no_live_session_is_refused_and_takes_none(band: Orchestra, ready_names: list[str]) -> None:
    """Distinct from «nothing is ready», and whether or not there is something."""
    if ready_names:
        await band.submit(make("a"))
    expired, ended = await more_workers(band, 2)
    await expire(band, expired)
    await band.coordinator.deregister(ended)
    for worker, swept in ((expired, False), (ended, True), (12345, True)):
        for limit in (0, 5):
            with pytest.raises(SessionOver) as refused:
                await band.coordinator.claim(worker, limit=limit)
            assert (refused.value.facts["worker_id"], refused.value.swept) == (worker, swept)
            assert isinstance(refused.value, Conflict)
    assert await band.ready_names() == ready_names
    assert await band.coordinator.claim(band.worker, limit=0) == []
    assert [claim.name for claim in await band.claim()] == ready_names


async def test_a_session_that_is_renewed_in_time_or_told_to_drain_may_claim(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    await expire(band)
    assert (await band.coordinator.beat(band.worker)).alive
    assert len(await band.claim(1)) == 1
    await band.database.transact(lambda session: drain_worker(session, band.worker))
    assert len(await band.claim(1)) == 1


@SERVERS
async def test_no_claim_waits_for_a_beat_and_no_beat_for_a_claim(band: Orchestra) -> None:
    """The worker's row is looked at without a lock."""
    await band.submit(make("a"), make("b"))
    async with asyncio.timeout(60), band.transaction() as beating:
        assert (await renew_session(beating, band.worker, 30)).alive
        assert len(await band.claim(1)) == 1
    async with asyncio.timeout(60), band.transaction() as claiming:
        assert len(await claim_tasks(claiming, worker_id=band.worker, **OPTIONS)) == 1
        assert (await band.coordinator.beat(band.worker)).alive


@SERVERS
async def test_a_sweep_under_way_does_not_hold_up_a_claim(band: Orchestra) -> None:
    """The claim looks at what is committed: the session is alive. The next sweep finds what it took."""
    await band.submit(make("a"))
    async with asyncio.timeout(60), band.transaction() as sweeping:
        await stop_worker(sweeping, band.worker)
        assert len(await band.claim()) == 1
    with pytest.raises(SessionOver):
        await band.claim()
    assert await band.database.transact(lambda session: recover_claims(session, 1)) == 1
    assert await band.violations() == []


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_the_plan_looks_at_one_worker_before_the_queue(band: Orchestra) -> None:
    """The session is looked up by its key, once for a statement; the queue by its index, as before."""
    await more_workers(band, 50)
    async with band.transaction() as session:
        driver = driver_of(session.connection)
        await driver.execute(f"PREPARE look (bigint, int, bigint, bigint, int, int) AS {postgres._CLAIM_FRONT}")
        await driver.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        rows = await driver.fetch(f"EXPLAIN EXECUTE look (0, 0, 5, {band.worker}, 1, 5)")
        await driver.execute("DEALLOCATE look")
    plan = [row[0].strip() for row in rows]
    looks = [line for line in plan if "on workers" in line]
    assert looks
    assert all("Index" in line for line in looks), plan
    assert any("One-Time Filter" in line for line in plan), plan
    assert not any("Seq Scan" in line for line in plan), plan
    assert any("Index Cond: ((reserved_for = $1) AND (lane = $2))" in line for line in plan), plan
