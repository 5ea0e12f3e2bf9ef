"""Questions about the state as a whole, on each of the three databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import delete, insert, update

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.store.reading import health
from aaiclick.orchestration.store.reading.health import LeaderState, Stale
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import tasks, terms, workers
from tests.support.band import band as band
from tests.support.orchestra import Orchestra, make


async def end_session(band: Orchestra, ago_s: float) -> None:
    """The worker's session ended so long ago."""

    async def work(session: Session) -> None:
        over = await session.now() - timedelta(seconds=ago_s)
        await session.run(update(workers).where(workers.c.id == band.worker).values(expires_at=over))

    await band.database.transact(work)


async def stale(band: Orchestra, grace_s: float = 10) -> Stale:
    return await band.database.read(lambda session: health.stale_claims(session, grace_s=grace_s))


async def test_workers_are_live_until_their_session_is_over(band: Orchestra) -> None:
    assert await band.database.read(health.count_live_workers) == 1
    await band.coordinator.register(hostname="there", pid=2)
    assert await band.database.read(health.count_live_workers) == 2
    await band.coordinator.register(hostname="there", pid=3, concurrency=0)  # a job_test, which takes only its own
    assert await band.database.read(health.count_live_workers) == 2
    await end_session(band, 0)
    assert await band.database.read(health.count_live_workers) == 1


async def test_a_stopped_worker_is_not_live_whatever_its_time(band: Orchestra) -> None:
    async def work(session: Session) -> None:
        await session.run(update(workers).values(status=WorkerStatus.STOPPED))

    await band.database.transact(work)
    assert await band.database.read(health.count_live_workers) == 0


async def test_there_is_work_while_a_task_is_ready_or_held(band: Orchestra) -> None:
    assert not await band.database.read(health.has_work)
    first, second = make("first"), make("second")
    first >> second
    await band.submit(first, second)
    assert await band.database.read(health.has_work)
    (claim,) = await band.claim()
    assert await band.database.read(health.has_work)
    await band.complete(claim)
    await band.drain()
    assert not await band.database.read(health.has_work)


async def test_claims_of_live_workers_are_not_stale(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    await band.claim()
    assert await stale(band) == Stale(0, 0.0)


async def test_claims_are_stale_when_the_session_has_been_over_for_a_while(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    await band.claim()
    await end_session(band, ago_s=5)
    assert (await stale(band, grace_s=3600)).number == 0
    assert (await stale(band, grace_s=1)).number == 2


async def test_the_oldest_stale_claim_is_told_by_the_databases_time(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    claims = await band.claim()
    await end_session(band, ago_s=3600)

    async def work(session: Session) -> None:
        long_ago = await session.now() - timedelta(days=2)
        await session.run(update(tasks).where(tasks.c.id == claims[0].task_id).values(claimed_at=long_ago))

    await band.database.transact(work)
    found = await stale(band)
    assert found.number == 2
    assert found.oldest_s >= timedelta(days=2).total_seconds()


async def test_a_claim_of_a_worker_that_never_was_is_stale(band: Orchestra) -> None:
    await band.submit(make())
    await band.claim()

    async def work(session: Session) -> None:
        await session.run(delete(workers))

    await band.database.transact(work)
    assert (await stale(band)).number == 1


async def test_counts_end_where_many_begin(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "COUNTED_MAX", 3)
    await band.submit(*(make(f"t{number}") for number in range(5)))
    await band.claim()
    await end_session(band, ago_s=60)
    assert (await stale(band)).number == 3


async def test_what_is_delayed_is_overdue_when_nobody_promotes_it(band: Orchestra) -> None:
    async def overdue(grace_s: float) -> int:
        return await band.database.read(lambda session: health.count_overdue(session, grace_s=grace_s))

    await band.submit(make(max_retries=1))
    await band.fail(*await band.claim())
    assert await overdue(0) == 0
    await band.let_time_pass()
    assert await overdue(10) == 1
    assert await overdue(100 * 365 * 24 * 3600) == 0


async def test_the_leader_is_whoever_holds_the_term(band: Orchestra) -> None:
    assert await band.database.read(health.leader) is None

    async def work(session: Session) -> None:
        soon = await session.now() + timedelta(seconds=100)
        mine = {"role": "control", "holder": 7, "term": 3, "expires_at": soon}
        await session.run(insert(terms).values([mine, mine | {"role": "other", "holder": 8}]))

    await band.database.transact(work)
    found = await band.database.read(health.leader)
    assert found == LeaderState(7, 3, found.left_s if found else 0)
    assert 0 < found.left_s <= 100


async def test_of_a_term_that_is_over_nothing_is_left(band: Orchestra) -> None:
    async def work(session: Session) -> None:
        before = await session.now() - timedelta(seconds=5)
        await session.run(insert(terms).values(role="control", holder=7, term=3, expires_at=before))

    await band.database.transact(work)
    found = await band.database.read(health.leader)
    assert found is not None
    assert found.left_s <= -5


async def test_workers_that_cannot_report(band: Orchestra) -> None:
    async def stuck() -> health.Stuck | None:
        return await band.database.read(lambda session: health.stuck_workers(session, grace_s=10))

    other = await band.coordinator.register(hostname="there", pid=2)
    await band.coordinator.beat(band.worker, unreported_s=9)
    assert await stuck() is None
    await band.coordinator.beat(band.worker, unreported_s=12)
    await band.coordinator.beat(other.id, unreported_s=95)
    assert await stuck() == (2, other.id, "there", 95)
    await band.coordinator.beat(other.id)
    assert await stuck() == (1, band.worker, "here", 12)
    await band.coordinator.deregister(band.worker)
    assert await stuck() is None
