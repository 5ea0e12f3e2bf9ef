"""Which tables may go, and what is seen of the references that have ended."""

from __future__ import annotations

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.tables import table_context_refs, table_run_refs
from tests.support.band import band
from tests.support.chores import chores
from tests.support.orchestra import Orchestra, make
from tests.support.tables import failed, hold, look, pins, registered, returned

__all__ = ["band"]


async def test_nothing_to_see(band: Orchestra) -> None:
    assert await band.database.transact(table_drops.mark_unneeded) == 0
    assert await chores(band) == {}


async def test_a_table_is_gone_from_the_instant_it_is_marked(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    assert "drop_unneeded" not in await chores(band)
    await band.report(returned(claim))
    assert "drop_unneeded" in await chores(band)
    await look(band)
    assert await registered(band) == set()
    assert "drop_unneeded" in await chores(band)
    assert await band.database.read(table_drops.next_to_drop) == [table]
    assert await band.database.read(lambda session: table_drops.next_to_drop(session, table)) == []
    await band.database.transact(lambda session: table_drops.forget_tables(session, [table]))
    assert "drop_unneeded" not in await chores(band)


async def test_references_that_have_been_seen_are_deleted_and_live_ones_stay(band: Orchestra) -> None:
    a = make("a")
    consumer = make("b", kwargs={"x": a})
    await band.submit(a, consumer)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    (claim,) = await band.claim()
    await band.report(failed(claim))
    assert len(await band.rows(select(table_run_refs))) == 1
    await look(band)
    assert await band.rows(select(table_run_refs)) == []
    assert await pins(band) == {(consumer.id, table)}


async def test_references_to_tables_that_nobody_knows_do_no_harm(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    await band.report(returned(claim))
    await look(band)
    assert await band.rows(select(table_run_refs)) == []
    assert await band.database.read(table_drops.next_to_drop) == []


async def test_a_table_that_is_dropping_stays_so(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim))
    gone = update(table_context_refs).values(dropping=True)
    await band.database.transact(lambda session: session.run(gone))
    await look(band)
    assert await band.database.read(table_drops.next_to_drop) == [table]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"], indirect=True)
async def test_the_few_that_are_marked_are_found_by_an_index_of_their_own(band: Orchestra, dialect: str) -> None:
    """With a table so small PostgreSQL reads it all, unless that is forbidden."""
    words = sqlite.dialect() if dialect == "sqlite" else postgresql.dialect()
    async with band.transaction() as session:
        if dialect == "postgres":
            await session.run(text("SET LOCAL enable_seqscan = off"))
        for build, index in (
            (table_drops._freed_refs, "ix_table_run_refs_freed"),
            (table_drops._freed_pins, "ix_table_pin_refs_freed"),
        ):
            said = build(session.dialect).limit(5)
            asked = said.compile(dialect=words, compile_kwargs={"literal_binds": True})
            plan = await session.rows(text(f"EXPLAIN {'QUERY PLAN' if dialect == 'sqlite' else ''} {asked}"))
            assert index in str(plan)
