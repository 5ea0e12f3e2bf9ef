"""Sessions that ended, and what they held."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from aaiclick.orchestration.models import Held, Worker
from aaiclick.orchestration.store import workers as worker_sessions
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, events, jobs, ready, runs, tasks, workers
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, done, expire, make, more_workers

__all__ = ["band"]


async def sweep(band: Orchestra, losses_max: int = 10) -> int:
    await band.database.transact(worker_sessions.expire_sessions)
    return await band.database.transact(lambda session: recoveries.recover_claims(session, losses_max))


async def another(band: Orchestra) -> Worker:
    return await band.coordinator.register(hostname="there", pid=2)


async def test_runs_of_a_session_that_ended_are_given_to_others(band: Orchestra) -> None:
    job = await band.submit(make("a"), make("b"))
    old = await band.claim()
    await expire(band)
    assert await sweep(band) == 2
    assert await band.statuses(job) == {"a": "pending", "b": "pending"}
    other = await another(band)
    new = await band.coordinator.claim(other.id, limit=9)
    assert [claim.epoch for claim in new] == [claim.epoch + 2 for claim in old]
    assert (await band.complete(*old)).accepted == set()
    assert len((await band.coordinator.report(other.id, [done(claim) for claim in new])).accepted) == 2
    assert (await band.job(job)).status == "completed"
    assert await band.violations() == []


async def test_a_loss_is_counted_apart_from_failures_and_crashes(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim(begins=1)
    await expire(band)
    await sweep(band)
    task = await band.task(claim)
    assert (task.lost_count, task.attempt, task.crash_count, task.worker_id) == (1, 0, 0, None)
    (run,) = await band.rows(select(runs))
    assert (run.outcome, run.worker_id, run.epoch) == ("lost", band.worker, claim.epoch)
    moves = [row.move for row in await band.rows(select(events).order_by(events.c.id)) if row.task_id]
    assert moves == ["claim", "recover", "retry"]


async def test_what_loses_its_worker_too_often_is_given_up_with_the_cause(band: Orchestra) -> None:
    first, second = make("a"), make("b")
    first >> second
    job = await band.submit(first, second)
    for _ in range(2):
        worker = await another(band)
        await band.coordinator.claim(worker.id, limit=1, begins=1)
        await expire(band, worker.id)
        assert await sweep(band, losses_max=2) == 1
    assert await band.statuses(job) == {"a": "failed", "b": "upstream_failed"}
    ended = await band.job(job)
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.startswith("WorkerLost: The session of worker")
    assert await band.violations() == []


async def test_a_live_session_keeps_its_runs(band: Orchestra) -> None:
    await band.submit(make("a"))
    claims = await band.claim()
    assert await sweep(band) == 0
    assert len((await band.complete(*claims)).accepted) == 1


async def test_an_expired_session_that_no_sweep_has_ended_can_be_renewed(band: Orchestra) -> None:
    """Its expiry counts once the sweep has moved it, not before."""
    await band.submit(make("a"))
    claims = await band.claim()
    await expire(band)
    assert len((await band.complete(*claims)).accepted) == 1
    assert (await band.coordinator.beat(band.worker)).alive
    assert await sweep(band) == 0


async def test_an_ended_session_is_never_alive_again(band: Orchestra) -> None:
    await expire(band)
    await sweep(band)
    assert not (await band.coordinator.beat(band.worker, known_call=0, held=[])).alive
    assert await sweep(band) == 0


@pytest.mark.parametrize("begun", [True, False])
async def test_a_loss_counts_only_if_the_body_had_begun(band: Orchestra, begun: bool) -> None:
    """Whoever waits in a dead worker's line did nothing to it, however often that happens."""
    task = make("a")
    await band.submit(task)
    for _ in range(4):
        (worker,) = await more_workers(band, 1)
        (claim,) = await band.coordinator.claim(worker, limit=1, call=1)
        if begun:
            await band.coordinator.beat(worker, known_call=1, held=[Held(claim.task_id, claim.epoch, started=True)])
        await expire(band, worker)
        assert await sweep(band, losses_max=5) == 1
    after = await band.task(task)
    assert (after.status, after.lost_count) == ("pending", 4 if begun else 0)
    causes = {row.error for row in await band.rows(select(runs.c.error))}
    assert all(("(not counted)" in cause) != begun for cause in causes)


async def test_of_a_batch_the_front_begins_at_once(band: Orchestra) -> None:
    """In the order in which they would be taken, whatever order the database finds them in."""
    await band.submit(*(make(f"t{number}", priority=number % 5) for number in range(9)))
    taken = await band.claim(begins=3)
    await expire(band)
    assert await sweep(band) == 9
    lost = {row.id for row in await band.rows(select(tasks.c.id).where(tasks.c.lost_count == 1))}
    assert lost == {claim.task_id for claim in taken[:3]}


async def late_claim(band: Orchestra) -> None:
    """Claim as a statement does that had looked at the session before it ended, and took until now."""

    async def work(session: Session) -> None:
        task = (await session.rows(select(tasks.c.id)))[0].id
        values = {"status": "claimed", "worker_id": band.worker, "epoch": tasks.c.epoch + 1}
        now = await session.now()
        await session.run(update(tasks).where(tasks.c.id == task).values(**values, claimed_at=now, started_at=now))
        await session.run(delete(ready))
        epoch = await session.scalar(select(tasks.c.epoch))
        await session.insert(claims, [{"worker_id": band.worker, "task_id": task, "epoch": epoch}])

    await band.database.transact(work)


async def test_a_claim_that_is_committed_after_the_session_was_swept_is_found_and_counts_as_nothing(
    band: Orchestra,
) -> None:
    task = make("a")
    job = await band.submit(task)
    await expire(band)
    assert await sweep(band) == 0
    for _ in range(3):
        await late_claim(band)
        assert await sweep(band, losses_max=1) == 1
    assert await band.statuses(job) == {"a": "pending"}
    assert (await band.task(task)).lost_count == 0


@SERVERS
async def test_a_session_that_is_swept_while_a_claim_is_under_way_loses_what_it_took(band: Orchestra) -> None:
    """The claim had looked; the sweep does not wait for it, and the next one finds what it took."""
    job = await band.submit(make("a"), make("b"))
    async with band.transaction() as session:
        options: dict[str, Any] = {"reserved_for": 0, "limit": 2, "after": None, "started": set()}
        assert len(await claim_tasks(session, worker_id=band.worker, **options)) == 2
        await expire(band)
        assert await sweep(band) == 0
    assert await sweep(band) == 2
    assert await band.statuses(job) == {"a": "pending", "b": "pending"}
    assert await band.violations() == []


async def test_a_claim_of_a_worker_that_nobody_knows_is_found(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    await band.claim()
    await band.database.transact(lambda session: session.run(delete(workers)))
    assert await sweep(band) == 1
    assert await band.statuses(job) == {"a": "pending"}


async def test_running_tasks_are_brought_back_too_and_in_bounded_steps(band: Orchestra) -> None:
    await band.submit(*(make(f"t{number}") for number in range(7)))
    taken = await band.claim()
    running = [Held(claim.task_id, claim.epoch, started=True) for claim in taken[:3]]
    rest = [Held(claim.task_id, claim.epoch) for claim in taken[3:]]
    await band.coordinator.beat(band.worker, known_call=1, held=[*running, *rest])
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    steps = [await band.database.transact(lambda session: recoveries.recover_claims(session, 10, 3)) for _ in range(4)]
    assert steps == [3, 3, 1, 0]
    assert await band.rows(select(claims)) == []
    assert await band.violations() == []


@SERVERS
async def test_a_completion_under_way_wins_over_the_sweep(band: Orchestra) -> None:
    """The sweep passes over the row, and finds nothing to recover when it looks again."""
    from aaiclick.orchestration.store.claims.reports import take_reports

    job = await band.submit(make("a"))
    (claim,) = await band.claim()
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    async with band.transaction() as session:
        receipt = await take_reports(session, band.worker, [done(claim)], lambda: 1.0)
        assert await sweep(band) == 0
    assert (len(receipt.accepted), await sweep(band)) == (1, 0)
    assert (await band.job(job)).status == "completed"
    assert await band.violations() == []


@SERVERS
async def test_a_sweep_under_way_wins_over_the_completion(band: Orchestra) -> None:
    import asyncio

    job = await band.submit(make("a"))
    (claim,) = await band.claim()
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    async with band.transaction() as session:
        assert await recoveries.recover_claims(session, 10) == 1
        completing = asyncio.create_task(band.complete(claim))
        await band.until_waiting()
    assert (await completing).accepted == set()
    assert await band.statuses(job) == {"a": "pending"}
    assert await band.violations() == []


@SERVERS
async def test_two_sweeps_at_once_bring_a_run_back_once(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim(begins=1)
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    async with band.transaction() as session:
        first = await recoveries.recover_claims(session, 10)
        second = await sweep(band)
    assert (first, second, await sweep(band)) == (1, 0, 0)
    assert (await band.task(claim)).lost_count == 1
    assert await band.violations() == []


@SERVERS
async def test_a_beat_under_way_saves_the_session_from_the_sweep(band: Orchestra) -> None:
    """The sweep waits for the worker's row and asks again whether its session has expired."""
    import asyncio

    from aaiclick.orchestration.store.workers import renew_session

    await expire(band)
    async with band.transaction() as session:
        assert (await renew_session(session, band.worker, 30)).alive
        sweeping = asyncio.create_task(band.database.transact(worker_sessions.expire_sessions))
        await band.until_waiting()
    assert await sweeping == 0


async def test_a_job_that_was_kept_by_a_process_that_is_gone_is_cancelled(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    await band.coordinator.reserve(job.id, band.worker)
    assert await band.database.read(recoveries.abandoned_jobs) == []
    await band.coordinator.deregister(band.worker)
    assert await band.database.read(recoveries.abandoned_jobs) == [job.id]
    assert await band.database.transact(lambda session: recoveries.abandon_job(session, job.id))
    assert not await band.database.transact(lambda session: recoveries.abandon_job(session, job.id))
    ended = await band.job(job)
    assert (ended.status, ended.error) == (
        "cancelled",
        "JobAbandoned: The process that ran it with job_test is gone.",
    )
    assert await band.violations() == []


async def test_a_job_that_another_has_taken_meanwhile_is_left_alone(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    await band.coordinator.reserve(job.id, band.worker)
    await band.coordinator.deregister(band.worker)
    other = await another(band)
    await band.coordinator.reserve(job.id, other.id)
    assert not await band.database.transact(lambda session: recoveries.abandon_job(session, job.id))
    assert await band.scalar(select(jobs.c.status)) == "pending"


@SERVERS
@pytest.mark.parametrize("ahead_s", [-3600, 3600])
async def test_the_workers_clock_plays_no_part(
    band: Orchestra, ahead_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker whose clock is an hour wrong is neither dead nor immortal (pitfall T17)."""
    import time

    monkeypatch.setattr(time, "time", lambda real=time.time: real() + ahead_s)
    worker = await another(band)
    assert abs(worker.expires_at - await band.database.read(lambda session: session.now())) < timedelta(minutes=1)
    assert (await band.coordinator.beat(worker.id)).alive
    assert await band.database.transact(worker_sessions.expire_sessions) == 0
