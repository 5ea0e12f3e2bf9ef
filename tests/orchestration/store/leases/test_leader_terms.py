"""Who leads, by a row with an end."""

from __future__ import annotations

import asyncio

from sqlalchemy import select, update

from aaiclick.orchestration.control.leader import try_for_term
from aaiclick.orchestration.store.leases import leader_terms
from aaiclick.orchestration.store.tables import terms as rows
from tests.support.band import SERVERS, band
from tests.support.orchestra import LONG_AGO, Orchestra

__all__ = ["band"]


async def take(band: Orchestra, holder: int) -> int | None:
    """The number of the term that this holder got."""
    term = await try_for_term(band.database, "control", holder, 30)
    return None if term is None else term.term


async def expire(band: Orchestra) -> None:
    await band.database.transact(lambda session: session.run(update(rows).values(expires_at=LONG_AGO)))


async def test_one_leads_and_the_other_does_not(band: Orchestra) -> None:
    assert await take(band, 1) == 1
    assert await take(band, 2) is None
    assert await take(band, 1) == 1


async def test_an_expired_term_is_taken_over_with_a_new_number(band: Orchestra) -> None:
    """Where the row was inserted with «do nothing on conflict», it never would be (pitfall T7)."""
    assert await take(band, 1) == 1
    await expire(band)
    assert await take(band, 2) == 2
    assert await take(band, 1) is None


async def test_an_expired_term_can_be_renewed_by_its_holder(band: Orchestra) -> None:
    """With a clock in a constraint it could not be touched any more (pitfall T6)."""
    assert await take(band, 1) == 1
    await expire(band)
    assert await take(band, 1) == 1
    assert await take(band, 2) is None


async def test_who_leaves_lets_another_lead_at_once(band: Orchestra) -> None:
    await take(band, 1)
    await band.database.transact(lambda session: leader_terms.leave_term(session, "control", 2))
    assert await take(band, 2) is None
    await band.database.transact(lambda session: leader_terms.leave_term(session, "control", 1))
    assert await take(band, 2) == 2


async def test_how_long_another_may_lead(band: Orchestra) -> None:
    async def left_s(holder: int) -> float:
        return await band.database.read(lambda session: leader_terms.term_left_s(session, "control", holder))

    assert await left_s(1) == 0
    await take(band, 1)
    assert (await left_s(1), 0 < await left_s(2) <= 30) == (0, True)
    await expire(band)
    assert await left_s(2) == 0


async def test_roles_are_apart(band: Orchestra) -> None:
    assert await take(band, 1) == 1
    assert await try_for_term(band.database, "other", 2, 30) is not None


@SERVERS
async def test_of_many_at_once_one_leads(band: Orchestra) -> None:
    for _ in range(5):
        got = await asyncio.gather(*(take(band, holder) for holder in range(1, 9)))
        assert len([term for term in got if term is not None]) == 1
        await expire(band)
    holders = await band.rows(select(rows.c.term))
    assert len(holders) == 1
