"""Hits and misses are decided with the claim, in one transaction, by the database's clock."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim
from aaiclick.orchestration.rules.values.encoding import encode_value
from aaiclick.orchestration.store.claims.cached_hits import recall
from aaiclick.orchestration.store.definitions.cache_tables import cache_entries
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.reading.cached_results import list_entries, remove_chosen
from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.retention.cache_ages import remove_expired
from aaiclick.orchestration.store.retention.table_ages import mark_expired
from aaiclick.orchestration.store.tables import events, jobs, tasks
from tests.support.band import SERVERS, band
from tests.support.orchestra import LONG_AGO, Orchestra, done, make
from tests.support.tables import drop, hold, pins, registered, result_of, returned

__all__ = ["band"]

KEY = CacheKey("d" * 64, "some.module.t", "i" * 64)
VALUE = encode_value(5, bytes_max=100)


async def claim_one(band: Orchestra, *, name: str = "t", **options: Any) -> Claim:
    await band.submit(make(name), **options)
    (claim,) = await band.claim(limit=1, begins=1)
    return claim


async def run(band: Orchestra, statement: Any) -> None:
    await band.database.transact(lambda session: session.run(statement))


async def ask(band: Orchestra, claim: Claim, key: CacheKey = KEY) -> CacheAnswer:
    return await band.coordinator.recall(claim, key)


async def made(band: Orchestra, result: str = VALUE, key: CacheKey = KEY, **options: Any) -> Claim:
    """A run that missed, ran its body and is remembered."""
    claim = await claim_one(band, **options)
    assert (await ask(band, claim, key)).remembers
    await band.report(replace(done(claim, result), remember=key))
    return claim


async def made_table(band: Orchestra, key: CacheKey = KEY) -> tuple[Claim, str]:
    claim = await claim_one(band)
    assert (await ask(band, claim, key)).remembers
    (table,) = await hold(band, claim)
    await band.report(replace(returned(claim, table), remember=key, made=(table,)))
    return claim, table


async def task_row(band: Orchestra, claim: Claim) -> Any:
    (row,) = await band.rows(select(tasks).where(tasks.c.id == claim.task_id))
    return row


async def moves_of(band: Orchestra, claim: Claim) -> list[tuple[str, str | None]]:
    rows = await band.rows(select(events).where(events.c.task_id == claim.task_id).order_by(events.c.id))
    return [(row.move, row.detail) for row in rows]


async def entries(band: Orchestra) -> list[int]:
    found = await band.database.read(lambda session: list_entries(session, None, 100, None))
    return [each.task_id for each in found]


# ---------------------------------------------------------------- hit and miss


async def test_a_miss_leaves_the_run_to_its_body_and_a_hit_completes_the_task(band: Orchestra) -> None:
    first = await claim_one(band)
    assert await ask(band, first) == CacheAnswer(remembers=True)
    assert (await task_row(band, first)).cache_outcome == "miss"
    assert await band.coordinator.job(first.job_id) is not None
    await band.report(replace(done(first, VALUE), remember=KEY))

    second = await claim_one(band)
    assert await ask(band, second) == CacheAnswer(hit=True, result_json=VALUE)
    row = await task_row(band, second)
    assert (row.status, row.result, row.cache_outcome, row.cached_from_id) == ("completed", VALUE, "hit", first.task_id)
    assert await moves_of(band, second) == [
        ("claim", None),
        ("cache_hit", f"from task {first.task_id}"),
        ("complete", None),
    ]
    job = await band.coordinator.job(second.job_id)
    assert job is not None
    assert (job.status, job.open_tasks) == ("completed", 0)
    assert await band.violations() == []


async def test_a_lost_answer_is_given_again_and_the_report_after_it_counts(band: Orchestra) -> None:
    await made(band)
    claim = await claim_one(band)
    first = await ask(band, claim)
    assert await ask(band, claim) == first
    receipt = await band.report(done(claim, VALUE))
    assert receipt.accepted == {(claim.task_id, claim.epoch)}
    assert [move for move, _ in await moves_of(band, claim)].count("complete") == 1


async def test_dependents_go_on_after_a_hit(band: Orchestra) -> None:
    await made(band)
    await band.submit(make("t") >> make("after"))
    (claim,) = await band.claim(limit=1)
    assert (await ask(band, claim)).hit
    assert set(await band.claim_named()) == {"after"}


async def test_only_the_run_that_has_the_claim_is_answered(band: Orchestra) -> None:
    await made(band)
    claim = await claim_one(band)
    await band.coordinator.release(band.worker, [claim])
    with pytest.raises(ClaimLost):
        await ask(band, claim)
    assert (await task_row(band, claim)).status == "pending"


async def test_what_failed_is_not_remembered(band: Orchestra) -> None:
    claim = await claim_one(band)
    await ask(band, claim)
    await band.fail(claim)
    assert await entries(band) == []


async def test_a_key_counts_for_the_function_of_the_task_alone(band: Orchestra) -> None:
    """A node may say anything: it reads and writes what belongs to functions that it was given to run."""
    await made(band)
    assert (await ask(band, await claim_one(band, name="other"))).remembers
    (row,) = await band.rows(select(cache_entries))
    assert (row.entrypoint, row.digest == KEY.digest) == ("some.module.t", False)


async def test_another_key_is_a_miss(band: Orchestra) -> None:
    await made(band)
    assert (await ask(band, await claim_one(band), replace(KEY, digest="e" * 64))).remembers


# ---------------------------------------------------------------- time, refreshing, clearing


async def test_an_entry_whose_time_is_over_is_a_miss_and_is_replaced(band: Orchestra) -> None:
    await made(band, key=replace(KEY, ttl_s=3600))
    await run(band, update(cache_entries).values(expires_at=LONG_AGO))
    second = await made(band, key=replace(KEY, ttl_s=3600))
    assert await entries(band) == [second.task_id]
    assert (await ask(band, await claim_one(band))).hit


@pytest.mark.parametrize("mode", ["refresh", "off"])
async def test_a_job_may_refresh_or_leave_the_cache_alone(band: Orchestra, mode: str) -> None:
    first = await made(band)
    claim = await claim_one(band, cache_mode=mode)
    answer = await ask(band, claim)
    assert answer == (CacheAnswer(remembers=True, refresh=True) if mode == "refresh" else CacheAnswer())
    remembered = replace(KEY, refresh=answer.refresh) if answer.remembers else None
    await band.report(replace(done(claim, VALUE), remember=remembered))
    assert await entries(band) == [claim.task_id if mode == "refresh" else first.task_id]
    assert (await task_row(band, claim)).cache_outcome == (mode if mode == "refresh" else None)


async def test_a_task_may_refresh(band: Orchestra) -> None:
    await made(band)
    answer = await ask(band, await claim_one(band), replace(KEY, refresh=True))
    assert (answer.hit, answer.refresh) == (False, True)


async def test_a_cleared_task_runs_again_and_is_remembered_anew(band: Orchestra) -> None:
    first = await made(band)
    await band.database.transact(lambda session: clear_tasks(session, [first.task_id]))
    assert (await task_row(band, first)).cache_outcome is None
    (again,) = await band.claim(limit=1)
    answer = await ask(band, again)
    assert answer == CacheAnswer(remembers=True, refresh=True)
    await band.report(replace(done(again, encode_value(6, bytes_max=100)), remember=replace(KEY, refresh=True)))
    assert (await ask(band, await claim_one(band))).result_json == encode_value(6, bytes_max=100)


# ---------------------------------------------------------------- idempotency keys

ONCE = replace(KEY, label="charge-5", once=True)


async def test_a_key_is_noted_and_remembered_as_long_as_its_job(band: Orchestra) -> None:
    first = await made(band, key=ONCE)
    assert (await task_row(band, first)).idempotency_key == "charge-5"
    (row,) = await band.rows(select(cache_entries))
    assert (row.kind, row.label, row.expires_at) == ("key", "charge-5", None)
    for mode in ("refresh", "off"):  # these are about the cache
        assert (await ask(band, await claim_one(band, cache_mode=mode), ONCE)).hit
    assert await band.database.transact(remove_expired) == 0
    await run(band, jobs.delete().where(jobs.c.id == first.job_id))
    assert await band.database.transact(remove_expired) == 1


async def test_a_key_with_other_arguments_is_a_conflict(band: Orchestra) -> None:
    first = await made(band, key=ONCE)
    claim = await claim_one(band)
    assert await ask(band, claim, replace(ONCE, inputs="j" * 64)) == CacheAnswer(conflict=first.task_id)
    assert (await task_row(band, claim)).status == "claimed"


# ---------------------------------------------------------------- tables


async def test_a_table_lives_as_long_as_its_entry(band: Orchestra) -> None:
    _, table = await made_table(band)
    assert await drop(band) == set()
    second = await claim_one(band)
    assert (await ask(band, second)).result_json == result_of(table)
    assert await drop(band) == set()
    assert await band.database.transact(lambda session: remove_chosen(session, 10)) == 1
    assert await drop(band) == {table}
    assert await pins(band) == set()


async def test_a_consumer_of_a_hit_is_pinned_on_its_table(band: Orchestra) -> None:
    _, table = await made_table(band)
    producer = make("t")
    consumer = make("use", kwargs={"of": producer})
    await band.submit(producer, consumer)
    (claim,) = await band.claim(limit=1)
    assert (await ask(band, claim)).hit
    await band.database.transact(lambda session: remove_chosen(session, 10))
    assert await drop(band) == set(), "the consumer needs it"
    assert await pins(band) == {(consumer.id, table)}
    await band.drain(lambda claim: returned(claim, made=()))
    assert await drop(band) == {table}
    assert await band.violations() == []


async def test_an_entry_whose_table_was_dropped_is_a_miss(band: Orchestra) -> None:
    _, table = await made_table(band)
    await band.database.transact(lambda session: table_drops.mark_dropping(session, [table]))
    assert (await ask(band, await claim_one(band))).remembers
    assert await entries(band) == []


async def test_a_remembered_table_outlives_the_time_of_its_job(band: Orchestra) -> None:
    first, table = await made_table(band)
    await run(band, update(jobs).where(jobs.c.id == first.job_id).values(completed_at=LONG_AGO))
    assert await band.database.transact(lambda session: mark_expired(session, 1.0)) == 0
    await band.database.transact(table_drops.free_idle_pins)
    assert await drop(band) == set()
    assert await registered(band) == {table}


async def test_results_that_name_what_ends_elsewhere_are_not_remembered(band: Orchestra) -> None:
    for result in (result_of("p_named"), result_of("c5_1")):
        claim = await claim_one(band)
        await ask(band, claim)
        await band.report(replace(done(claim, result), remember=KEY))
    assert await entries(band) == []


# ---------------------------------------------------------------- several at once


@SERVERS
async def test_two_that_miss_at_once_both_run_and_one_is_remembered(band: Orchestra, dialect: str) -> None:
    await band.submit(*(make("t") for _ in range(2)))
    claims = await band.claim(limit=2)
    answers = await asyncio.gather(*(ask(band, claim) for claim in claims))
    assert [answer.remembers for answer in answers] == [True, True]
    held = {claim.task_id: (await hold(band, claim))[0] for claim in claims}

    async def report(claim: Claim) -> None:
        table = held[claim.task_id]
        await band.coordinator.report(band.worker, [replace(returned(claim, table), remember=KEY, made=(table,))])

    await asyncio.gather(*map(report, claims))
    (winner,) = await entries(band)
    (row,) = await band.rows(select(cache_entries))
    assert await pins(band) == {(row.id, held[winner])}
    assert await drop(band) == {held[claim.task_id] for claim in claims if claim.task_id != winner}
    assert (await ask(band, await claim_one(band))).result_json == result_of(held[winner])


@SERVERS
async def test_a_table_that_is_being_dropped_waits_for_a_hit_or_is_a_miss(band: Orchestra, dialect: str) -> None:
    """Whoever locks the table first wins: it is never dropped under a task that was given it."""
    _, table = await made_table(band)
    claim = await claim_one(band)

    answer, _ = await asyncio.gather(ask(band, claim), removed_and_looked(band))
    if not answer.hit:
        assert await drop(band) == {table}
        return
    await band.report(done(claim, answer.result_json))
    assert (await task_row(band, claim)).result == result_of(table)


@SERVERS
async def test_the_dropper_waits_while_a_hit_is_being_written(band: Orchestra, dialect: str) -> None:
    _, table = await made_table(band)
    producer = make("t")
    consumer = make("use", kwargs={"of": producer})
    await band.submit(producer, consumer)
    (claim,) = await band.claim(limit=1)
    async with band.transaction() as session:
        found = await recall(session, band.worker, claim.task_id, claim.epoch, KEY)
        assert found.answer.hit
        removing = asyncio.create_task(removed_and_looked(band))
        await band.until_waiting()
    await removing
    assert await drop(band) == set()
    assert await pins(band) == {(consumer.id, table)}


async def removed_and_looked(band: Orchestra) -> None:
    await band.database.transact(lambda session: remove_chosen(session, 10))
    while await band.database.transact(table_drops.mark_unneeded):
        pass
