"""The heartbeat's list: what a worker holds against what the state says it holds."""

from __future__ import annotations

from typing import Any

from aaiclick.orchestration.coordinator.direct import FREE_EVERY_S, DirectCoordinator
from aaiclick.orchestration.models import Claim, Held, Stop
from tests.support.band import band
from tests.support.ids import HandClock
from tests.support.orchestra import Orchestra, done, make
from tests.support.tables import drop, hold, references_left, returned, run_refs

__all__ = ["band"]


def held(*claims: object, **facts: object) -> list[Held]:
    return [Held(claim.task_id, claim.epoch, **facts) for claim in claims]  # type: ignore[attr-defined, arg-type]


async def test_what_is_listed_stays(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    claims = await band.coordinator.claim(band.worker, limit=2, call=1)
    orders = await band.coordinator.beat(band.worker, known_call=1, held=held(*claims))
    assert (orders.alive, orders.drain, orders.stop) == (True, False, {})
    assert len((await band.complete(*claims)).accepted) == 2


async def test_a_claim_whose_answer_was_lost_is_given_back_and_not_held_against_the_task(band: Orchestra) -> None:
    """The reply to a claim's commit was lost: the worker owns tasks that it does not know (pitfall T22)."""
    job = await band.submit(make("known"), make("unknown"))
    (known,) = await band.coordinator.claim(band.worker, limit=1, call=1)
    (unknown,) = await band.coordinator.claim(band.worker, limit=1, call=2)
    await band.coordinator.beat(band.worker, known_call=2, held=held(known))
    assert await band.statuses(job) == {"known": "claimed", "unknown": "pending"}
    task = await band.task(unknown)
    assert (task.epoch, task.attempt, task.lost_count, task.crash_count) == (unknown.epoch + 1, 0, 0, 0)
    assert (await band.complete(unknown)).accepted == set()
    assert await band.violations() == []


async def test_a_claim_whose_answer_is_still_on_its_way_stays(band: Orchestra) -> None:
    """The list was made before call 2 was answered: what that call claimed must not be taken from the worker."""
    await band.submit(make("a"), make("b"))
    (first,) = await band.coordinator.claim(band.worker, limit=1, call=1)
    (second,) = await band.coordinator.claim(band.worker, limit=1, call=2)
    await band.coordinator.beat(band.worker, known_call=1, held=held(first))
    assert len((await band.complete(first, second)).accepted) == 2


async def test_without_a_list_nothing_is_given_back(band: Orchestra) -> None:
    await band.submit(make("a"))
    claims = await band.coordinator.claim(band.worker, limit=1)
    await band.coordinator.beat(band.worker)
    assert len((await band.complete(*claims)).accepted) == 1


async def test_runs_that_are_somebody_elses_are_to_be_stopped_and_the_reason_is_said(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    other = await band.submit(make("b"), name="other")
    cancelled, taken = await band.claim()
    await band.coordinator.cancel(job.id)
    await band.coordinator.release(band.worker, [taken])
    orders = await band.coordinator.beat(band.worker, known_call=1, held=held(cancelled, taken))
    assert orders.stop == {
        (cancelled.task_id, cancelled.epoch): Stop.CANCELLED,
        (taken.task_id, taken.epoch): Stop.LOST,
    }
    assert (await band.job(other)).status == "running"


async def test_an_older_run_of_a_task_that_is_claimed_again_is_lost(band: Orchestra) -> None:
    await band.submit(make("a"))
    (old,) = await band.claim()
    await band.coordinator.release(band.worker, [old])
    (new,) = await band.claim()
    orders = await band.coordinator.beat(band.worker, known_call=9, held=held(old, new))
    assert orders.stop == {(old.task_id, old.epoch): Stop.LOST}


async def test_a_run_that_takes_long_is_seen_to_run_with_its_log(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    (claim,) = await band.claim()
    for _ in range(2):
        runs = held(claim, started=True, log_path="somewhere/1.log")
        await band.coordinator.beat(band.worker, known_call=1, held=runs)
    assert await band.statuses(job) == {"a": "running"}
    task = await band.task(claim)
    assert (task.log_path, task.started_at) == ("somewhere/1.log", task.claimed_at)
    assert len((await band.report(done(claim))).accepted) == 1
    assert await band.violations() == []


async def test_a_stale_run_does_not_start_a_newer_one(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    (old,) = await band.claim()
    await band.coordinator.release(band.worker, [old])
    await band.claim()
    await band.coordinator.beat(band.worker, known_call=0, held=held(old, started=True))
    assert await band.statuses(job) == {"a": "claimed"}


async def test_the_workers_counts_are_brought_up_to_date(band: Orchestra) -> None:
    await band.coordinator.beat(band.worker, completed=3, failed=1)
    await band.coordinator.beat(band.worker, completed=2)
    from aaiclick.orchestration.store import workers

    (worker,) = await band.database.read(lambda session: workers.list_workers(session, None))
    assert (worker.tasks_completed, worker.tasks_failed) == (5, 1)


async def test_a_worker_that_is_asked_to_drain_hears_of_it(band: Orchestra) -> None:
    from aaiclick.orchestration.store import workers

    assert await band.database.transact(lambda session: workers.drain_worker(session, band.worker)) == "active"
    orders = await band.coordinator.beat(band.worker)
    assert (orders.alive, orders.drain) == (True, True)
    assert await band.database.transact(lambda session: workers.drain_worker(session, 12345)) is None


async def reading(band: Orchestra, *, call: int = 0) -> tuple[int, Claim]:
    """A claim that holds a table, of a job with this id."""
    maker = make("maker")
    job = await band.submit(maker, make("reader", kwargs={"x": maker}))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    (claim,) = await band.coordinator.claim(band.worker, limit=1, call=call)
    assert claim.registered
    return job.id, claim


async def beat_in_a_minute(band: Orchestra, *workers: int, **facts: Any) -> None:
    """Of workers that share a coordinator, some time after their first beats."""
    clock = HandClock()
    coordinator = DirectCoordinator(band.database, clock=clock)
    for worker in workers:
        await coordinator.beat(worker)
        await coordinator.beat(worker, known_call=0, held=facts["held"])
    clock.pass_by(FREE_EVERY_S)
    for worker in workers:
        await coordinator.beat(worker, **facts)


async def test_what_a_lost_claim_held_is_let_go_also_where_someone_took_the_claim_away(band: Orchestra) -> None:
    """Neither the worker nor the claim is left to say so."""
    job, _ = await reading(band, call=2)
    await band.coordinator.cancel(job)
    await beat_in_a_minute(band, band.worker, known_call=2, held=[])
    assert await run_refs(band) == set()
    assert len(await drop(band)) == 2
    assert await references_left(band) == 0


async def test_what_a_lost_claim_held_is_let_go_for_each_worker_of_a_coordinator(band: Orchestra) -> None:
    """One that beats often must not take the turn of all others."""
    other = await band.coordinator.register(hostname="other", pid=2)
    job, _ = await reading(band, call=2)
    await band.coordinator.cancel(job)
    await beat_in_a_minute(band, other.id, band.worker, known_call=2, held=[])
    assert await run_refs(band) == set()


async def test_what_is_listed_or_still_on_its_way_keeps_its_tables(band: Orchestra) -> None:
    """Its body may go on, or begin."""
    job, claim = await reading(band, call=2)
    await band.coordinator.cancel(job)
    await beat_in_a_minute(band, band.worker, known_call=2, held=held(claim))
    assert len(await run_refs(band)) == 2
    await beat_in_a_minute(band, band.worker, known_call=1, held=[])
    assert len(await run_refs(band)) == 2
    assert await drop(band) == set()


async def test_what_a_body_asked_for_itself_is_let_go_by_its_worker_alone(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    (claim,) = await band.coordinator.claim(band.worker, limit=1, call=1)
    await hold(band, claim)
    await band.coordinator.cancel(job.id)
    await beat_in_a_minute(band, band.worker, known_call=5, held=[])
    assert len(await run_refs(band)) == 1
