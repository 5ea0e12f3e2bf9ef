"""Two who mind the same table at once, forced into the order that hurts most."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from unittest.mock import patch

import pytest
from sqlalchemy import select

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.store.claims import claiming as store_claims
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.dialects.table_moves import Changes, TableMoves
from aaiclick.orchestration.store.moves import early_endings
from aaiclick.orchestration.store.object_tables import references
from aaiclick.orchestration.store.object_tables.holds import Hold, hold_tables
from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import table_run_refs, tasks
from tests.support.orchestra import Orchestra, make, orchestra
from tests.support.tables import drop, failed, hold, pins, registered, returned, run_refs, table_of

pytestmark = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened
        assert not await opened.violations(at_rest=False)


async def _nothing(*_: object) -> set[int]:
    return set()


async def published_only(stage: Orchestra, *after: str) -> str:
    """A table that one consumer needs, and at which there is something to see."""
    a = make("a")
    b = make("b", kwargs={"x": a})
    await stage.submit(a, b, *(make(name, kwargs={"x": b}) for name in after))
    (claim,) = await stage.claim()
    (table,) = await hold(stage, claim)
    await stage.report(returned(claim, table))
    ended = {"task_id": claim.task_id, "epoch": 0, "table_name": table, "worker_id": stage.worker, "freed": True}
    await stage.database.transact(lambda session: session.insert(table_run_refs, [ended]))  # there is something to see
    return table


async def published(stage: Orchestra) -> tuple[str, Claim]:
    """The same, and the claim of that consumer, with which no table was registered: its body asks for itself."""
    table = await published_only(stage)
    with patch.object(store_claims, "register_first", _nothing):
        (consumer,) = await stage.claim()
    return table, consumer


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_consumer_that_is_claimed_while_someone_looks_finds_its_input(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    table = await published_only(stage)
    claims: list[Claim] = []

    async def claim() -> None:
        claims.extend(await stage.claim())

    await with_a_look(stage, monkeypatch, when, claim)
    assert claims[0].registered
    assert await drop(stage) == set()
    await stage.report(returned(claims[0], made=()))
    assert await drop(stage) == {table}


async def test_a_claim_that_commits_beside_a_cancel_holds_nothing_or_all(stage: Orchestra) -> None:
    """Whoever comes second sees what the first did; what the claim held is let go by its worker."""
    table = await published_only(stage)
    (job,) = {row.job_id for row in await stage.rows(select(tasks.c.job_id))}
    async with stage.transaction() as cancelling:
        await early_endings.cancel_job(cancelling, job)
        assert await stage.claim() == []
    assert await run_refs(stage) == set()
    assert await drop(stage) == {table}


async def with_a_look(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch, when: str, meanwhile: Callable[[], Awaitable[object]]
) -> None:
    """Whoever drops has locked the tables; before or after it looks for references, something else commits."""
    asked = table_drops._needed

    async def needed(session: Session, names: Iterable[str]) -> set[str]:
        if when == "before":
            await meanwhile()
        found = await asked(session, names)
        if when == "after":
            await meanwhile()
        return found

    monkeypatch.setattr(table_drops, "_needed", needed)
    assert await stage.database.transact(table_drops.mark_unneeded)
    monkeypatch.setattr(table_drops, "_needed", asked)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_table_that_is_published_while_someone_looks_at_it_stays(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """By one that was given it and hands it on: its own pin ends as the next begins."""
    table = await published_only(stage, "c")
    (claim,) = await stage.claim()
    await with_a_look(stage, monkeypatch, when, lambda: stage.report(returned(claim, table, made=())))
    (needing,) = await pins(stage)
    assert needing[1] == table
    assert needing[0] != claim.task_id
    assert await registered(stage) == {table}
    assert await drop(stage) == set()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("ends", ["cancel", "release"])
async def test_what_a_run_holds_is_seen_while_its_claim_is_taken_away(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch, when: str, ends: str
) -> None:
    """The claim goes, and references take its place: whoever looks sees the one or the others."""
    table = await published_only(stage)
    (claim,) = await stage.claim()
    mine = table_of(claim)
    ended = {"task_id": 1, "epoch": 0, "table_name": mine, "worker_id": stage.worker, "freed": True}
    await stage.database.transact(lambda session: session.insert(table_run_refs, [ended]))

    async def end() -> None:
        if ends == "cancel":
            await stage.coordinator.cancel(claim.job_id)
        else:
            await stage.coordinator.release(stage.worker, [claim])

    await with_a_look(stage, monkeypatch, when, end)
    kept = {table} if ends == "release" else {table, mine}
    assert await drop(stage) == {mine} - kept
    assert await registered(stage) == kept
    await stage.coordinator.let_go(stage.worker, [(claim.task_id, claim.epoch)])
    assert await drop(stage) == ({table, mine} if ends == "cancel" else set())


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_table_whose_last_consumer_ends_while_someone_looks_is_looked_at_again(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    table, consumer = await published(stage)
    await with_a_look(stage, monkeypatch, when, lambda: stage.report(returned(consumer)))
    assert await drop(stage) == {table}


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_consumer_that_begins_and_fails_while_someone_looks_finds_its_input_again(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    table, consumer = await published(stage)

    async def begin_and_fail() -> None:
        await stage.report(failed(consumer))

    await with_a_look(stage, monkeypatch, when, begin_and_fail)
    assert await drop(stage) == set()
    assert await pins(stage) == {(consumer.task_id, table)}


async def test_a_hold_before_the_sweep_is_freed_after_it(stage: Orchestra) -> None:
    _, consumer = await published(stage)
    await stage.coordinator.deregister(stage.worker)
    async with stage.transaction() as holding:
        asked = Hold(consumer.task_id, consumer.epoch, [table_of(consumer)])
        assert await hold_tables(holding, stage.worker, [asked])
        sweeping = asyncio.create_task(stage.database.transact(lambda session: recoveries.recover_claims(session, 10)))
        assert await stage.database.transact(table_drops.free_strays) == 0
        await asyncio.sleep(0.1)
    await sweeping
    await stage.database.transact(lambda session: recoveries.recover_claims(session, 10))
    assert await stage.database.transact(table_drops.free_strays) == 1
    assert await run_refs(stage) == set()
    assert await drop(stage) == {table_of(consumer)}


async def test_a_hold_after_the_sweep_is_refused(stage: Orchestra) -> None:
    table, consumer = await published(stage)
    await stage.coordinator.deregister(stage.worker)
    async with stage.transaction() as sweeping:
        assert await recoveries.recover_claims(sweeping, 10)
        holding = asyncio.create_task(hold(stage, consumer))
        await stage.until_waiting()
    with pytest.raises(ClaimLost):
        await holding
    assert await run_refs(stage) == set()
    assert await pins(stage) == {(consumer.task_id, table)}


async def test_a_hold_that_waited_for_a_cancel_is_refused(stage: Orchestra) -> None:
    table, consumer = await published(stage)
    async with stage.transaction() as completing:
        await take_reports(completing, stage.worker, [returned(consumer)], lambda: 1.0)
        holding = asyncio.create_task(hold(stage, consumer))
        await stage.until_waiting()
    with pytest.raises(ClaimLost):
        await holding
    assert await drop(stage) == {table}


async def test_two_who_drop_at_once_do_it_once(stage: Orchestra) -> None:
    table, consumer = await published(stage)
    await stage.report(returned(consumer))
    async with stage.transaction() as first:
        await table_drops.mark_unneeded(first)
        second = asyncio.create_task(stage.database.transact(table_drops.mark_unneeded))
        await stage.until_waiting()
    await second
    assert await drop(stage) == {table}


async def test_a_pin_that_had_ended_and_is_needed_again_outlives_who_deletes_what_ended(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not be found there, then deleted, and then not be found."""
    table, consumer = await published(stage)
    await stage.database.transact(lambda session: references.free_pins(session, [consumer.task_id]))
    looking: list[asyncio.Task[int]] = []

    moves = type(stage.database.dialect.tables)
    write = moves.change

    async def change(self: TableMoves, session: Session, changes: Changes) -> None:
        await write(self, session, changes)
        looking.append(asyncio.ensure_future(stage.database.transact(table_drops.mark_unneeded)))
        await asyncio.wait(looking, timeout=1)  # it commits, or waits for this transaction

    monkeypatch.setattr(moves, "change", change)
    await stage.database.transact(lambda session: references.pin(session, [(consumer.task_id, table)]))
    await asyncio.gather(*looking)
    assert await pins(stage) == {(consumer.task_id, table)}
