"""Who leads, and for how long the leader trusts it."""

from __future__ import annotations

from sqlalchemy import select, update

from aaiclick.orchestration.control.leader import Leader
from aaiclick.orchestration.store.tables import terms
from tests.support.band import band
from tests.support.clocks import HandClock
from tests.support.orchestra import LONG_AGO, Orchestra

__all__ = ["band"]


def leader(band: Orchestra, holder: int, clock: HandClock) -> Leader:
    return Leader(band.database, holder, ttl_s=10, clock=clock)


async def expire(band: Orchestra) -> None:
    await band.database.transact(lambda session: session.run(update(terms).values(expires_at=LONG_AGO)))


async def test_one_of_two_leads(band: Orchestra) -> None:
    clock = HandClock()
    first, second = leader(band, 1, clock), leader(band, 2, clock)
    assert await first.try_to_lead()
    assert not await second.try_to_lead()
    assert (first.leads, second.leads) == (True, False)


async def test_a_term_is_trusted_for_less_than_its_life(band: Orchestra) -> None:
    """The leader's lock moves when it is cut off, and it does not know (pitfall T16)."""
    clock = HandClock()
    one = leader(band, 1, clock)
    await one.try_to_lead()
    clock.now += 5.9
    assert one.leads
    clock.now += 0.2
    assert not one.leads


async def test_a_leader_renews_in_time_and_asks_nobody_in_between(band: Orchestra) -> None:
    clock = HandClock()
    one = leader(band, 1, clock)
    await one.try_to_lead()
    before = await band.scalar(select(terms.c.expires_at))
    clock.now += 3
    assert await one.try_to_lead()
    assert await band.scalar(select(terms.c.expires_at)) == before
    clock.now += 1
    assert await one.try_to_lead()
    assert await band.scalar(select(terms.c.expires_at)) > before


async def test_who_does_not_lead_looks_again_when_the_term_may_be_over(band: Orchestra) -> None:
    clock = HandClock()
    first, second = leader(band, 1, clock), leader(band, 2, clock)
    await first.try_to_lead()
    assert not await second.try_to_lead()
    await expire(band)
    assert not await second.try_to_lead()  # it does not look yet
    clock.now += 11
    assert await second.try_to_lead()
    assert await band.scalar(select(terms.c.term)) == 2


async def test_a_leader_that_was_away_too_long_finds_another_in_its_place(band: Orchestra) -> None:
    clock = HandClock()
    first, second = leader(band, 1, clock), leader(band, 2, clock)
    await first.try_to_lead()
    await expire(band)
    assert await second.try_to_lead()
    clock.now += 20
    assert not first.leads
    assert not await first.try_to_lead()


async def test_who_leaves_lets_another_lead_at_once(band: Orchestra) -> None:
    clock = HandClock()
    first, second = leader(band, 1, clock), leader(band, 2, clock)
    await first.try_to_lead()
    await first.leave()
    assert not first.leads
    assert await second.try_to_lead()
    await first.leave()  # not its own any more
    assert second.leads
