"""A run says which tables it uses before it does."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.store.table_holds import name_of_installation
from aaiclick.orchestration.store.tables import installation, table_context_refs
from tests.support.band import band
from tests.support.orchestra import Orchestra, make
from tests.support.tables import drop, hold, references_left, registered, run_refs

__all__ = ["band"]


async def test_a_run_is_known_to_use_its_tables_before_it_does(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    made = await hold(band, claim, outputs=2)
    assert await registered(band) == set(made)
    assert await run_refs(band) == {(claim.task_id, claim.epoch, table) for table in made}
    assert await drop(band) == set()


async def test_holding_twice_is_holding_once(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    await hold(band, claim, "t1_1_1", outputs=2)
    before = await run_refs(band)
    await hold(band, claim, "t1_1_1", outputs=2)
    assert await run_refs(band) == before
    assert len(await band.rows(select(table_context_refs))) == 2


async def test_who_lost_the_claim_holds_nothing(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    (claim,) = await band.claim()
    await band.coordinator.cancel(job.id)
    with pytest.raises(ClaimLost):
        await hold(band, claim)
    assert await references_left(band) == 0


async def test_an_installation_keeps_its_name(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    first = await band.coordinator.hold(claim)
    assert first == await band.database.transact(name_of_installation)
    assert [row.id for row in await band.rows(select(installation))] == [first]
