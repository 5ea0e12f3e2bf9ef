"""What became of reconcilers: whoever leads writes it, and nobody who led before."""

from __future__ import annotations

from aaiclick.orchestration.store.leases import reconcilers as store
from aaiclick.orchestration.store.leases.reconcilers import TROUBLE_LENGTH_MAX, Account
from tests.support.band import band
from tests.support.orchestra import Orchestra

__all__ = ["band"]


async def take_over(band: Orchestra, term: int, *names: str) -> dict[str, Account]:
    return await band.database.transact(lambda session: store.take_over(session, term, sorted(names)))


async def write(band: Orchestra, term: int, **accounts: Account) -> None:
    await band.database.transact(lambda session: store.write(session, term, accounts))


async def shown(band: Orchestra) -> dict[str, tuple[int, int, int, float]]:
    found = await band.database.read(store.read_reconcilers)
    return {each.name: (each.runs, each.done, each.failures, each.seconds) for each in found}


async def test_before_anybody_has_led_nothing_is_known(band: Orchestra) -> None:
    assert await shown(band) == {}


async def test_what_is_written_twice_is_the_same(band: Orchestra) -> None:
    assert await take_over(band, 1, "a", "b") == {"a": Account(), "b": Account()}
    for _ in range(2):
        await write(band, 1, a=Account(3, 7, 1, 0.5, ran_s_ago=20.0, trouble="no é", trouble_s_ago=30.0))
    assert await shown(band) == {"a": (3, 7, 1, 0.5), "b": (0, 0, 0, 0.0)}
    a, b = await band.database.read(store.read_reconcilers)
    assert a.ran_at is not None
    assert a.trouble_at is not None
    assert (a.ran_at - a.trouble_at).total_seconds() == 10
    assert a.ran_s_ago is not None
    assert a.ran_s_ago >= 20
    assert (a.trouble, a.is_failing) == ("no é", False)
    assert (b.ran_at, b.ran_s_ago, b.trouble, b.is_failing) == (None, None, None, False)


async def test_the_last_trouble_stays_when_it_is_over(band: Orchestra) -> None:
    await take_over(band, 1, "a")
    await write(band, 1, a=Account(1, 0, 1, 0.0, ran_s_ago=10.0, trouble="x" * TROUBLE_LENGTH_MAX, trouble_s_ago=10.0))
    (a,) = await band.database.read(store.read_reconcilers)
    assert a.is_failing
    await write(band, 1, a=Account(2, 0, 1, 0.0, ran_s_ago=0.0))
    (a,) = await band.database.read(store.read_reconcilers)
    assert (a.trouble, a.is_failing) == ("x" * TROUBLE_LENGTH_MAX, False)


async def test_counts_go_on_under_the_next_leader_and_the_last_one_is_refused(band: Orchestra) -> None:
    await take_over(band, 1, "a")
    await write(band, 1, a=Account(3, 7, 1, 0.5))
    assert await take_over(band, 2, "a") == {"a": Account(3, 7, 1, 0.5)}
    await write(band, 1, a=Account(4, 8, 1, 0.75))
    assert await shown(band) == {"a": (3, 7, 1, 0.5)}
    assert await take_over(band, 1, "a") == {}
    await write(band, 2, a=Account(5, 7, 1, 1.0))
    assert await shown(band) == {"a": (5, 7, 1, 1.0)}


async def test_what_only_another_version_knows_is_left_out(band: Orchestra) -> None:
    await take_over(band, 1, "a", "of before")
    await take_over(band, 2, "a", "new")
    assert set(await shown(band)) == {"a", "new"}
