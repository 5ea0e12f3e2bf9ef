"""The control loop: rounds, outages, and what a stale leader does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select, update

from aaiclick.backoff import AGAIN_S, said
from aaiclick.orchestration.control import repairs
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.pruning import Pruner
from aaiclick.orchestration.control.reconcilers import (
    COUNT_EVERY_S,
    MEND_EVERY_S,
    PRUNE_EVERY_S,
    RECONCILERS,
    SWEEP_EVERY_S,
    Reconciler,
    Tools,
)
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.tables import events, terms, workers
from tests.support.band import band
from tests.support.clocks import HandClock
from tests.support.orchestra import LONG_AGO, Orchestra, make

__all__ = ["band"]

SESSION_S = 30.0


def control(band: Orchestra, clock: HandClock, holder: int = 1) -> Control:
    return Control(band.database, holder, session_s=SESSION_S, clock=clock)


async def rounds(loop: Control, clock: HandClock, seconds: float) -> None:
    """Let it go on for so long."""
    until = clock.now + seconds
    while clock.now < until:
        clock.now += await loop.round()


async def expire_sessions(band: Orchestra) -> None:
    await band.database.transact(lambda session: session.run(update(workers).values(expires_at=LONG_AGO)))


async def test_a_lost_run_is_recovered_once_the_loop_has_been_in_reach_for_a_session(band: Orchestra) -> None:
    clock = HandClock()
    loop = control(band, clock)
    job = await band.submit(make("a"))
    await band.claim()
    await expire_sessions(band)
    await rounds(loop, clock, SESSION_S - 2)
    assert await band.statuses(job) == {"a": "claimed"}
    await rounds(loop, clock, 6)
    assert await band.statuses(job) == {"a": "pending"}
    assert await band.violations() == []


async def test_after_an_outage_it_waits_for_a_session_before_it_takes_anyone_for_dead(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage is not a crash: nobody could beat while the database was away."""
    clock = HandClock()
    loop = control(band, clock)
    await rounds(loop, clock, 2 * SESSION_S)
    assert loop.may_reap()
    job = await band.submit(make("a"))
    await band.claim()
    with monkeypatch.context() as outage:

        async def away(*_: object, **__: object) -> None:
            raise ConnectionRefusedError("no")

        outage.setattr(Database, "read", away)
        outage.setattr(Database, "transact", away)
        await rounds(loop, clock, 10)
    await expire_sessions(band)
    assert not loop.may_reap()
    await rounds(loop, clock, SESSION_S - 5)
    assert await band.statuses(job) == {"a": "claimed"}
    assert (await band.coordinator.beat(band.worker)).alive
    await rounds(loop, clock, 10)
    assert await band.statuses(job) == {"a": "claimed"}


async def test_a_loop_that_was_paused_itself_waits_too(band: Orchestra) -> None:
    clock = HandClock()
    loop = control(band, clock)
    await rounds(loop, clock, 2 * SESSION_S)
    clock.now += SESSION_S
    await loop.round()
    assert not loop.may_reap()


async def test_what_a_worker_left_in_order_is_given_to_others_at_once(band: Orchestra) -> None:
    """Its session is over by its own word: there is nothing to wait for."""
    loop = control(band, HandClock())
    job = await band.submit(make("a"))
    await band.claim()
    await band.coordinator.deregister(band.worker)
    await loop.round()
    assert await band.statuses(job) == {"a": "pending"}


async def test_delayed_tasks_are_promoted_and_the_next_round_comes_in_time(band: Orchestra) -> None:
    clock = HandClock()
    loop = control(band, clock)
    loop.every_s = 3600.0
    policy = RetryPolicy(max_retries=1, delay_s=1000, delay_s_max=1000, jitter=False)
    await band.submit(make("a", retry=policy))
    await band.fail(*await band.claim())
    pause_s = await loop.round()
    assert 0 < pause_s <= 1000
    await band.let_time_pass()
    await loop.round()
    assert await band.ready_names() == ["a"]


async def test_jobs_end_when_their_time_is_up(band: Orchestra) -> None:
    loop = control(band, HandClock())
    job = await band.submit(make("a"), timeout_s=1000)
    await band.claim()
    await loop.round()
    assert (await band.job(job)).status == "running"
    from aaiclick.orchestration.store.tables import jobs

    await band.database.transact(lambda session: session.run(update(jobs).values(started_at=LONG_AGO)))
    await loop.round()
    ended = await band.job(job)
    assert (ended.status, ended.error) == ("failed", "JobTimeout: The job ran longer than its limit of 1000 s.")
    assert await band.violations() == []


async def test_jobs_kept_by_processes_that_are_gone_are_cancelled(band: Orchestra) -> None:
    loop = control(band, HandClock())
    job = await band.submit(make("a"))
    await band.coordinator.reserve(job.id, band.worker)
    await loop.round()
    assert (await band.job(job)).status == "pending"
    await band.coordinator.deregister(band.worker)
    await loop.round()
    assert (await band.job(job)).status == "cancelled"


async def test_stuck_jobs_are_mended_and_it_is_said_loudly(band: Orchestra, caplog: pytest.LogCaptureFixture) -> None:
    from sqlalchemy import delete

    from aaiclick.orchestration.store.tables import ready

    clock = HandClock()
    loop = control(band, clock)
    first, second = make("a"), make("b")
    job = await band.submit(first, second)
    (claim,) = await band.claim(1)
    await band.complete(claim)
    await band.database.transact(lambda session: session.run(delete(ready)))  # as no code of ours would
    await rounds(loop, clock, MEND_EVERY_S + 5)
    assert await band.ready_names() == ["b"]
    assert "(repaired)" in caplog.text
    assert (await band.job(job)).status == "running"


async def test_two_leaders_at_once_harm_nothing(band: Orchestra) -> None:
    """The one that was paused does not know that it leads no more: all it writes is conditional."""
    clock = HandClock()
    stale, fresh = control(band, clock, 1), control(band, clock, 2)
    await rounds(stale, clock, 2 * SESSION_S)
    stale.leader._trusted_until = stale.leader._renew_at = float("inf")
    await band.database.transact(lambda session: session.run(update(terms).values(expires_at=LONG_AGO)))
    fresh._since = stale._since
    assert await fresh.leader.try_to_lead()
    job = await band.submit(make("a", max_retries=3), make("b"))
    await band.claim()
    await expire_sessions(band)
    for _ in range(3):
        await stale.round()
        await fresh.round()
    assert await band.statuses(job) == {"a": "pending", "b": "pending"}
    assert await band.violations() == []


async def test_with_nobody_leading_claims_and_completions_go_on(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    await band.complete(*await band.claim())
    assert (await band.job(job)).status == "completed"
    assert await band.scalar(select(terms.c.term)) is None


async def test_backoff_is_told_at_once_and_then_once_a_minute(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = HandClock()
    loop = control(band, clock)

    async def away(*_: object, **__: object) -> None:
        raise ConnectionRefusedError("no")

    monkeypatch.setattr(Database, "read", away)
    await rounds(loop, clock, 20)
    assert caplog.messages == ["the control loop fails: ConnectionRefusedError: no; trying again"]
    await rounds(loop, clock, 2 * AGAIN_S)
    assert len(caplog.messages) == 3
    assert "the control loop fails since 00:16:4" in caplog.messages[-1]


@pytest.mark.parametrize(
    ("owner", "books"), [(repairs, "count_events"), (Pruner, "prune_events"), (Pruner, "prune_jobs")]
)
async def test_books_that_cannot_be_kept_leave_no_lost_run_behind(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: object, books: str
) -> None:
    """An error in what is counted was taken for an outage, after which nobody is taken for dead: again and again."""

    async def wrong(*_: object) -> int:
        raise ValueError("what is this?")

    monkeypatch.setattr(owner, books, wrong)
    clock = HandClock()
    loop = control(band, clock)
    job = await band.submit(make("a"))
    await band.claim()
    await rounds(loop, clock, PRUNE_EVERY_S + 1)
    await expire_sessions(band)
    await rounds(loop, clock, SESSION_S)
    assert await band.statuses(job) == {"a": "pending"}
    assert caplog.text.count(f"{books} fails: ValueError: what is this?; trying again") == 1


@pytest.mark.parametrize("error", [ValueError("one row that cannot be read"), ConnectionError("reset"), TimeoutError()])
async def test_those_that_fail_each_time_keep_nobody_from_the_others(
    band: Orchestra, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """One job that nobody can repair was taken for an outage, in which no session ends: lost runs waited for ever."""
    ran: set[str] = set()

    def poisoned(each: Reconciler) -> Reconciler:
        async def act(tools: Tools) -> int:
            ran.add(each.name)
            raise error

        return replace(each, act=act, question=None)

    spared = ("end_dead_sessions", "recover_lost_runs")
    rows = [each if each.name in spared else poisoned(each) for each in RECONCILERS]
    clock = HandClock()
    loop = Control(band.database, 1, session_s=SESSION_S, clock=clock, reconcilers=rows)
    job = await band.submit(make("a"))
    await band.claim()
    await expire_sessions(band)
    await rounds(
        loop, clock, 2 * PRUNE_EVERY_S
    )  # each of them may have ended one round, as the first to meet an outage
    loop._since = clock.now - SESSION_S
    await loop.round()
    assert await band.statuses(job) == {"a": "pending"}
    clock.now += SWEEP_EVERY_S
    await rounds(loop, clock, 2)
    assert ran == {each.name for each in RECONCILERS} - set(spared)
    for name in ran:
        assert f"{name} fails: {said(error)}; trying again" in caplog.text
    assert "the control loop fails" not in caplog.text


async def test_whoever_leads_counts_what_has_happened(band: Orchestra) -> None:
    clock = HandClock()
    loop = control(band, clock)
    await band.submit(make("a"))
    await band.database.transact(lambda session: session.run(update(events).values(at=LONG_AGO)))
    await rounds(loop, clock, COUNT_EVERY_S - 3)
    assert await band.database.read(metrics.is_behind)
    await rounds(loop, clock, 6)
    assert not await band.database.read(metrics.is_behind)


async def test_whoever_leads_removes_old_events(band: Orchestra) -> None:
    clock = HandClock()
    loop = control(band, clock)
    await band.submit(make("a"))
    await band.submit(make("b"))
    await band.database.transact(lambda session: session.run(update(events).values(at=LONG_AGO)))
    await rounds(loop, clock, PRUNE_EVERY_S - 5)
    assert len(await band.rows(select(events.c.id))) == 2
    await rounds(loop, clock, 10)
    assert len(await band.rows(select(events.c.id))) == 1  # the newest stays
