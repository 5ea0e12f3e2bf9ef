"""Reports that change nothing: the same again, something else, or too late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, func, select, text

from aaiclick.orchestration.models import Claim, Receipt, Report
from aaiclick.orchestration.store.claims.recoveries import recover_claims
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.tables import events, graph_locks, jobs, runs, tasks
from aaiclick.orchestration.store.workers import expire_sessions
from tests.orchestration.store.reading.test_metrics import settle, shown
from tests.support.band import SERVERS, band
from tests.support.clearing import clear
from tests.support.contents import contents
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, done, expire, failure, make, orchestra

__all__ = ["band"]

Ending = Callable[[Orchestra, Claim], Awaitable[object]]


async def claim_one(band: Orchestra, **options: Any) -> Claim:
    await band.submit(make("t", **options))
    (claim,) = await band.claim(begins=1)
    return claim


def key(run: Claim | Report) -> tuple[int, int]:
    return run.task_id, run.epoch


async def late_events(band: Orchestra) -> list[tuple[Any, ...]]:
    """Of each: the run, its worker, the task's status by then, and the detail."""
    facts = (events.c.task_id, events.c.epoch, events.c.worker_id, events.c.status, events.c.detail)
    rows = await band.rows(select(*facts).where(events.c.move == "late_report").order_by(events.c.id))
    return [tuple(row) for row in rows]


async def apart_from_history(band: Orchestra) -> dict[str, Any]:
    """All rows, but those of events and runs."""
    return {name: rows for name, rows in (await contents(band.database)).items() if name not in ("events", "runs")}


def empty(receipt: Receipt) -> bool:
    return not receipt.accepted and not receipt.conflicts


# ---------------------------------------------------------------- late


async def lose(band: Orchestra, claim: Claim) -> None:
    await expire(band)
    await band.database.transact(expire_sessions)
    assert await band.database.transact(lambda session: recover_claims(session, 10)) == 1


async def lose_for_good(band: Orchestra, claim: Claim) -> None:
    await expire(band)
    await band.database.transact(expire_sessions)
    assert await band.database.transact(lambda session: recover_claims(session, 1)) == 1


async def give_back(band: Orchestra, claim: Claim) -> None:
    assert await band.coordinator.release(band.worker, [claim])


async def clear_it(band: Orchestra, claim: Claim) -> None:
    assert await clear(band, await band.task(claim))


async def cancel(band: Orchestra, claim: Claim) -> None:
    assert await band.coordinator.cancel(claim.job_id)


ENDINGS: dict[str, tuple[Ending, str, str]] = {
    "lost": (lose, "lost", "pending"),
    "lost for good": (lose_for_good, "lost", "failed"),
    "given back": (give_back, "released", "pending"),
    "cleared": (clear_it, "cleared", "pending"),
    "cancelled": (cancel, "cancelled", "cancelled"),
}
"""How a run ends without a word of its own: by what, its outcome, and what the task is then."""

SAID: dict[str, Callable[[Claim], Report]] = {
    "completed": done,
    "failed": failure,
    "crashed": lambda claim: failure(claim, crashed=True),
}


@pytest.mark.parametrize("ended", ENDINGS)
async def test_a_late_report_leaves_one_event_and_changes_nothing_else(band: Orchestra, ended: str) -> None:
    claim = await claim_one(band, max_retries=3)
    end, outcome, status = ENDINGS[ended]
    await end(band, claim)
    before = await apart_from_history(band)
    for report in (done(claim), done(claim), failure(claim)):
        assert empty(await band.report(report))
    told = (*key(claim), band.worker, status, f"completed, but {outcome} before")
    assert await late_events(band) == [told]
    assert await apart_from_history(band) == before
    (run,) = await band.rows(select(runs))
    assert (run.outcome, run.late) == (outcome, True)
    assert await band.violations() == []


async def test_the_event_says_what_was_reported(band: Orchestra) -> None:
    await band.submit(*map(make, SAID))
    held = await band.claim_named()
    await band.coordinator.release(band.worker, list(held.values()))
    await band.report(*(report(held[said]) for said, report in SAID.items()))
    assert [event[-1] for event in await late_events(band)] == [f"{said}, but released before" for said in SAID]


async def test_whatever_a_late_run_says_next_is_late_too_and_no_conflict(band: Orchestra) -> None:
    claim = await claim_one(band)
    await give_back(band, claim)
    for report in (done(claim), failure(claim), done(claim, '"other"'), grown(claim, make("child"))):
        assert empty(await band.report(report))
    assert len(await late_events(band)) == 1


async def test_a_late_run_that_made_tasks_adds_none_and_leaves_its_event(band: Orchestra) -> None:
    claim = await claim_one(band)
    await give_back(band, claim)
    for _ in range(2):
        assert empty(await band.report(grown(claim, make("child"))))
    assert await band.scalar(select(func.count()).select_from(tasks)) == 1
    assert [event[-1] for event in await late_events(band)] == ["completed, but released before"]
    assert await band.violations() == []


async def test_each_late_run_of_a_task_has_an_event_of_its_own(band: Orchestra) -> None:
    first = await claim_one(band)
    await give_back(band, first)
    (second,) = await band.claim()
    await give_back(band, second)
    (third,) = await band.claim()
    receipt = await band.complete(first, second, third)
    assert (receipt.accepted, receipt.conflicts) == ({key(third)}, set())
    assert empty(await band.fail(second))
    assert [event[:2] for event in await late_events(band)] == [key(first), key(second)]
    assert await band.violations() == []


async def test_of_what_nobody_ran_nothing_is_written(band: Orchestra) -> None:
    claim = await claim_one(band)
    other = (await band.coordinator.register(hostname="there", pid=2)).id
    await give_back(band, claim)
    before = await contents(band.database)
    for report in (done(claim), failure(claim)):
        assert empty(await band.coordinator.report(other, [report]))  # a run of another's
        assert empty(await band.report(replace(report, epoch=7)))  # an epoch that never was
        assert empty(await band.report(replace(report, task_id=12345)))
    assert await contents(band.database) == before


async def test_a_report_of_a_live_run_by_another_worker_is_no_event_and_no_conflict(band: Orchestra) -> None:
    claim = await claim_one(band)
    other = (await band.coordinator.register(hostname="there", pid=2)).id
    assert empty(await band.coordinator.report(other, [done(claim)]))
    assert (await band.complete(claim)).accepted == {key(claim)}
    assert empty(await band.coordinator.report(other, [done(claim)]))
    assert empty(await band.coordinator.report(other, [failure(claim)]))
    assert await late_events(band) == []


async def test_of_a_job_that_is_gone_nothing_is_written(band: Orchestra) -> None:
    claim = await claim_one(band)
    await cancel(band, claim)
    async with band.transaction() as session:
        await session.run(delete(jobs))
        await session.run(delete(graph_locks))
    before = await contents(band.database)
    assert empty(await band.report(done(claim)))
    assert empty(await band.report(grown(claim, make("child"))))
    async with band.transaction() as session:
        await session.run(delete(tasks))
    assert empty(await band.report(done(claim)))
    assert {**before, "tasks": None} == {**await contents(band.database), "tasks": None}


async def test_the_event_tells_no_more_than_what_kind_of_report_it_was(band: Orchestra) -> None:
    claim = await claim_one(band)
    await give_back(band, claim)
    await band.fail(claim, error="ValueError: hunter2", traceback="hunter2")
    assert "hunter2" not in str(await contents(band.database))


async def test_runs_that_report_too_late_are_counted_once_and_have_no_duration(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    claims = await band.claim()
    await band.coordinator.release(band.worker, claims)
    for _ in range(2):
        await band.complete(*claims)
    assert dict((await shown(band)).counters)["task_late_reports_total"] == 2
    assert (await shown(band)).histograms["task_duration_seconds"].count == 0
    assert await settle(band) > 0
    assert dict((await shown(band)).counters)["task_late_reports_total"] == 2


# ---------------------------------------------------------------- many at once


@SERVERS
@pytest.mark.parametrize("said", ["completed", "failed"])
async def test_of_many_who_tell_of_a_late_run_at_once_one_leaves_the_event(band: Orchestra, said: str) -> None:
    claim = await claim_one(band)
    await give_back(band, claim)
    async with band.transaction() as one:
        receipt = await take_reports(one, band.worker, [SAID[said](claim)], lambda: 1.0)
        others = [asyncio.create_task(band.report(report(claim))) for report in SAID.values()]
        await band.until_waiting(len(others))
    assert all(map(empty, [receipt, *await asyncio.gather(*others)]))
    assert len(await late_events(band)) == 1
    assert await band.violations() == []


async def test_of_several_processes_that_tell_of_late_runs_again_and_again_one_leaves_each_event(
    band: Orchestra,
) -> None:
    await band.submit(*(make("t") for _ in range(5)))
    claims = await band.claim()
    await band.coordinator.release(band.worker, claims)
    async with AsyncExitStack() as opened:
        others = [await opened.enter_async_context(orchestra(band.database.url)) for _ in range(3)]
        told = [
            other.coordinator.report(band.worker, [kind(claim) for claim in claims[:: (-1) ** turn]])
            for turn, kind in enumerate(SAID.values())
            for other in (band, *others)
        ]
        assert all(map(empty, await asyncio.gather(*told)))
    assert sorted(event[:2] for event in await late_events(band)) == sorted(map(key, claims))
    assert await band.violations() == []


@SERVERS
async def test_if_the_first_to_tell_is_cut_off_the_next_leaves_the_event(band: Orchestra) -> None:
    claim = await claim_one(band)
    await give_back(band, claim)
    async with band.transaction() as one:
        await take_reports(one, band.worker, [done(claim)], lambda: 1.0)
        other = asyncio.create_task(band.complete(claim))
        await band.until_waiting()
        await band.database.dialect.command(one.connection, "ROLLBACK")
    assert empty(await other)
    assert len(await late_events(band)) == 1
    assert await band.violations() == []


@SERVERS
async def test_a_report_that_waits_for_the_end_of_its_run_is_late(band: Orchestra) -> None:
    claim = await claim_one(band)
    async with band.transaction() as one:
        await expire_at_once(one, band.worker)
        assert await recover_claims(one, 10) == 1
        late = asyncio.create_task(band.complete(claim))
        await band.until_waiting()
    assert empty(await late)
    assert [event[:2] for event in await late_events(band)] == [key(claim)]
    assert await band.violations() == []


async def expire_at_once(session: Any, worker: int) -> None:
    await session.run(text("UPDATE workers SET status = 'stopped' WHERE id = :worker"), {"worker": worker})


@SERVERS
async def test_batches_of_late_runs_in_any_order_wait_for_each_other_and_never_in_a_circle(band: Orchestra) -> None:
    await band.submit(*(make(f"t{number}") for number in range(8)))
    claims = await band.claim()
    await band.coordinator.release(band.worker, claims)
    reports: list[Report] = [(done, failure)[number % 2](claim) for number, claim in enumerate(claims)]
    async with band.transaction() as one:
        await take_reports(one, band.worker, reports[3:5], lambda: 1.0)
        others = [
            asyncio.create_task(take_once(band, reports)),
            asyncio.create_task(take_once(band, reports[::-1])),
            asyncio.create_task(take_once(band, reports[2:])),
        ]
        await band.until_waiting(len(others))
    assert all(map(empty, await asyncio.gather(*others)))
    assert sorted(event[:2] for event in await late_events(band)) == sorted(map(key, claims))
    assert await band.violations() == []


async def take_once(band: Orchestra, reports: list[Report]) -> Receipt:
    """In one transaction that is not tried again: a deadlock is raised."""
    async with band.transaction() as session:
        return await take_reports(session, band.worker, reports, lambda: 1.0)


async def test_a_late_report_that_is_in_a_batch_twice_leaves_one_event(band: Orchestra) -> None:
    claim = await claim_one(band)
    await give_back(band, claim)
    assert empty(await band.report(done(claim), failure(claim), done(claim), grown(claim, make("child"))))
    assert len(await late_events(band)) == 1
    assert await band.violations() == []
