"""Claims that end by other hands: what their runs held is written down, until the bodies are dead."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.store.claims import claiming, recoveries
from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.object_tables.holds import register_first
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import table_pin_refs, table_run_refs
from tests.support.band import band
from tests.support.chores import chores
from tests.support.orchestra import Orchestra, done, make
from tests.support.tables import drop, hold, pins, references_left, registered, returned, run_refs, table_of

__all__ = ["band"]


async def reading(band: Orchestra) -> tuple[Claim, str]:
    """A live run that is given a table."""
    maker = make("maker")
    await band.submit(maker, make("reader", kwargs={"x": maker}))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    (claim,) = await band.coordinator.claim(band.worker, limit=1, call=7)
    return claim, table


async def test_a_cancelled_body_keeps_what_it_was_given_and_its_first_table_until_it_is_dead(band: Orchestra) -> None:
    """RULINGS 10."""
    claim, table = await reading(band)
    run = (claim.task_id, claim.epoch)
    await band.coordinator.cancel(claim.job_id)
    assert await pins(band) == set()
    assert await run_refs(band) == {(*run, table), (*run, table_of(claim))}
    assert {row.claim_call for row in await band.rows(select(table_run_refs))} == {7}
    assert await drop(band) == set()
    await band.coordinator.let_go(band.worker, [run])
    assert await drop(band) == {table, table_of(claim)}
    assert await references_left(band) == 0


async def test_a_cleared_body_keeps_them_while_the_next_run_completes(band: Orchestra) -> None:
    old, table = await reading(band)
    await band.coordinator.clear(old.task_id)
    (claim,) = await band.claim()
    await band.report(returned(claim, made=()))
    assert await drop(band) == set()
    assert await registered(band) == {table, table_of(old)}
    assert not (await band.report(returned(old, made=()))).accepted
    assert await drop(band) == {table}
    assert await references_left(band) == 0


@pytest.mark.parametrize("holds", [True, False])
async def test_a_late_report_lets_go_also_of_what_its_worker_did_not_know(band: Orchestra, holds: bool) -> None:
    claim, table = await reading(band)
    await band.coordinator.cancel(claim.job_id)
    report = returned(claim) if holds else done(claim)
    assert not (await band.report(report)).accepted
    assert await run_refs(band) == set()
    assert await drop(band) == {table, table_of(claim)}


async def test_a_run_whose_worker_is_lost_keeps_nothing_of_its_own(band: Orchestra) -> None:
    claim, table = await reading(band)
    await band.coordinator.deregister(band.worker)
    assert await band.database.transact(lambda session: recoveries.recover_claims(session, 10)) == 1
    assert await run_refs(band) == set()
    assert await drop(band) == {table_of(claim)}
    assert await pins(band) == {(claim.task_id, table)}


@pytest.mark.parametrize("ends", ["release", "lost", "cancel"])
async def test_a_body_that_is_dead_before_its_claim_ends_leaves_nothing(band: Orchestra, ends: str) -> None:
    """So it is where a worker leaves: whoever looks in between must look again."""
    await band.submit(make("a"))
    (claim,) = await band.claim()
    await hold(band, claim, outputs=4)
    await band.coordinator.let_go(band.worker, [(claim.task_id, claim.epoch)])
    assert "drop_unneeded" not in await chores(band)
    assert await drop(band) == set()
    if ends == "release":
        await band.coordinator.release(band.worker, [claim])
    elif ends == "lost":
        await band.coordinator.deregister(band.worker)
        await band.database.transact(lambda session: recoveries.recover_claims(session, 10))
    else:
        await band.coordinator.cancel(claim.job_id)
    assert len(await drop(band)) == 4
    assert await references_left(band) == 0


@pytest.mark.parametrize("dialect", ["mariadb"], indirect=True)
async def test_what_bodies_asked_for_is_not_written_twice(band: Orchestra, caplog: pytest.LogCaptureFixture) -> None:
    """The driver would warn of each."""
    job = await band.submit(make("a"), make("b"))
    for claim in await band.claim():
        await hold(band, claim)
    with caplog.at_level(logging.WARNING):
        await band.coordinator.cancel(job.id)
    assert not caplog.records


async def test_a_body_that_was_given_very_many_tables_keeps_all_of_them(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written where they are: none of them travels, neither here nor back."""
    claim, table = await reading(band)
    many = [f"t{number}_1_1" for number in range(1, 2_001)]
    pinned = [{"task_id": claim.task_id, "table_name": name} for name in many]
    await band.database.transact(lambda session: session.insert(table_pin_refs, pinned))
    read: list[int] = []
    rows = Session.rows

    async def counted(session: Session, *asked: Any) -> Any:
        found = await rows(session, *asked)
        read.append(len(found))
        return found

    monkeypatch.setattr(Session, "rows", counted)
    await band.coordinator.cancel(claim.job_id)
    monkeypatch.undo()
    run = (claim.task_id, claim.epoch)
    assert await run_refs(band) == {(*run, name) for name in (*many, table, table_of(claim))}
    assert max(read) < 10


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_a_connection_that_died_while_tables_were_registered_is_not_used_again(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claims are committed by then and stand; whoever comes next has nothing to do with it."""
    maker = make("maker")
    await band.submit(maker, make("reader", kwargs={"x": maker}))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))

    async def dying(session: Session, *given: Any) -> set[int]:
        async with band.database.connection() as other:
            pid = driver_of(session.connection).get_server_pid()
            await driver_of(other).execute(f"SELECT pg_terminate_backend({pid})")
        return await register_first(session, *given)

    monkeypatch.setattr(claiming, "register_first", dying)
    (claim,) = await band.claim()
    monkeypatch.undo()
    assert not claim.registered
    assert (await band.report(returned(claim))).accepted


async def test_a_run_without_tables_leaves_no_reference(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    await band.claim()
    await band.coordinator.cancel(job.id)
    assert await references_left(band) == 0
