"""Counting what runs on a node, under the lock of its row."""

from __future__ import annotations

import asyncio

from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.store.claims.on_node import count_on_node
from aaiclick.orchestration.store.nodes.states import remove_node
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]

F = "some.module.f"


async def begin(band: Orchestra, name: str = "box") -> int:
    return (await band.coordinator.register(hostname="h", pid=2, node=NodeDescription(name))).id


async def count(band: Orchestra, worker: int, entrypoint: str = F) -> int | None:
    return await band.database.transact(lambda session: count_on_node(session, worker, entrypoint))


async def test_claims_of_all_workers_of_the_node_count(band: Orchestra) -> None:
    first, second, other = await begin(band), await begin(band), await begin(band, "other")
    await band.submit(*(make("f") for _ in range(3)), make("g"))
    for worker in (first, second, other):
        band.worker = worker
        await band.claim(1)
    assert [await count(band, each) for each in (first, second, other)] == [2, 2, 1]
    assert await count(band, first, "some.module.g") == 0


async def test_a_worker_without_a_node_has_nothing_to_be_counted(band: Orchestra) -> None:
    assert await count(band, band.worker) is None
    gone = await begin(band)
    await band.database.transact(lambda session: remove_node(session, "box", 9, force=True))
    assert await count(band, gone) is None


@SERVERS
async def test_who_counts_second_sees_what_the_first_has_claimed(band: Orchestra) -> None:
    """Forced: the first has counted and not yet claimed when the second begins to count."""
    first, second = await begin(band), await begin(band)
    await band.submit(make("f"))
    async with band.transaction() as session:
        assert await count_on_node(session, first, F) == 0
        counting = asyncio.create_task(count(band, second))
        await band.until_waiting()
        taken = await session.dialect.claim_ready(session, worker_id=first, reserved_for=0, lane=0, limit=1, after=None)
        assert len(taken) == 1
    assert await counting == 1
