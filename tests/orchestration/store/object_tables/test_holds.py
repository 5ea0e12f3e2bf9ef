"""A run says which tables it may make before it does."""

from __future__ import annotations

import asyncpg
import pytest
from sqlalchemy import select, update

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.models import Claim, Task
from aaiclick.orchestration.store.claims import claiming as store_claims
from aaiclick.orchestration.store.object_tables.holds import name_of_installation
from aaiclick.orchestration.store.tables import installation, table_context_refs, tasks
from tests.support.band import band
from tests.support.orchestra import Orchestra, done, make
from tests.support.tables import drop, hold, pins, references_left, registered, returned, run_refs, table_of

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
    await hold(band, claim, outputs=2)
    before = await run_refs(band)
    await hold(band, claim, outputs=2)
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
    first = await band.coordinator.hold(claim, [])
    assert first == await band.database.transact(name_of_installation)
    assert [row.id for row in await band.rows(select(installation))] == [first]


# ---------------------------------------------------------------- with the claim


async def given(band: Orchestra) -> tuple[Task, str]:
    """A task that is ready and is given a table."""
    maker = make("maker")
    reader = make("reader", kwargs={"x": maker})
    await band.submit(maker, reader)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    return reader, table


async def test_a_run_that_is_given_a_table_has_its_first_registered_with_the_claim(band: Orchestra) -> None:
    """And nothing else is written: what it is given is pinned, and its claim says that it goes on."""
    reader, table = await given(band)
    (claim,) = await band.claim()
    assert claim.registered
    assert claim.installation == await band.database.transact(name_of_installation)
    assert await run_refs(band) == set()
    assert await pins(band) == {(reader.id, table)}
    assert await registered(band) == {table, table_of(claim)}
    assert await drop(band) == set()
    await band.report(returned(claim, table_of(claim), made=(table_of(claim),)))
    assert await drop(band) == {table, table_of(claim)}
    assert await references_left(band) == 0


async def test_a_run_that_makes_nothing_leaves_nothing(band: Orchestra) -> None:
    _, table = await given(band)
    (claim,) = await band.claim()
    await band.report(returned(claim, made=()))
    assert await registered(band) == {table}
    assert await drop(band) == {table}
    assert await references_left(band) == 0


async def test_of_many_claims_those_that_are_given_tables_have_their_first_registered(band: Orchestra) -> None:
    makers = [make(f"m{number}") for number in range(3)]
    both = make("both", kwargs={"x": makers[0], "y": [makers[1]]})
    await band.submit(*makers, both, make("plain", kwargs={"n": makers[2]}), make("alone"))
    claims = {claim.name: claim for claim in await band.claim(3)}
    tables = {name: (await hold(band, claim))[0] for name, claim in claims.items() if name != "m2"}
    reports = [returned(claims[name], table, made=(table,)) for name, table in tables.items()]
    await band.report(*reports, done(claims["m2"]))
    found = await band.claim_named()
    assert {name for name, claim in found.items() if claim.registered} == {"both"}
    assert await registered(band) == {*tables.values(), table_of(found["both"])}


def _run(claim: Claim) -> tuple[int, int]:
    return claim.task_id, claim.epoch


async def test_what_is_given_back_is_let_go_also_where_someone_took_it_away_before(band: Orchestra) -> None:
    reader, table = await given(band)
    (claim,) = await band.claim()
    await band.coordinator.release(band.worker, [claim])
    assert await run_refs(band) == set()
    assert await drop(band) == {table_of(claim)}
    (claim,) = await band.claim()
    await band.coordinator.clear(reader.id)
    assert await run_refs(band) == {(*_run(claim), table), (*_run(claim), table_of(claim))}
    assert await band.coordinator.release(band.worker, [claim]) == set()
    assert await run_refs(band) == set()
    assert await pins(band) == {(reader.id, table)}


async def test_arguments_that_cannot_be_read_register_nothing(band: Orchestra) -> None:
    reader, _ = await given(band)
    broken = '{"x": "object"}'
    await band.database.transact(lambda session: session.run(update(tasks).values(kwargs=broken)))
    await band.database.transact(lambda session: session.run(update(tasks).values(needs_inputs=False)))
    (claim,) = await band.claim()
    assert (claim.task_id, claim.registered) == (reader.id, False)


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
@pytest.mark.parametrize("error", [asyncpg.DeadlockDetectedError("met"), asyncpg.QueryCanceledError("too slow")])
async def test_a_claim_that_committed_is_not_lost_because_its_table_could_not_be_registered(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """It would be given back, claimed again, and fail again."""

    async def register_first(*_: object) -> set[int]:
        raise error

    await band.submit(make("a"))
    monkeypatch.setattr(store_claims, "register_first", register_first)
    (claim,) = await band.claim()
    assert not claim.registered
    assert "registering tables with their claims fails" in caplog.text
    assert (await band.report(done(claim))).accepted


@pytest.mark.parametrize("dialect", ["sqlite", "mariadb"], indirect=True)
async def test_a_claim_that_is_one_transaction_with_its_table_is_undone(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def register_first(*_: object) -> set[int]:
        raise RuntimeError("a mistake")

    await band.submit(make("a"))
    with monkeypatch.context() as patched:
        patched.setattr(store_claims, "register_first", register_first)
        with pytest.raises(RuntimeError, match="a mistake"):
            await band.claim()
    assert len(await band.claim()) == 1
