"""What nodes say that they have becomes units, and so does what is set for all."""

from __future__ import annotations

import asyncio
from typing import Any

from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.resources import Unit
from aaiclick.orchestration.store.nodes.states import remove_node
from aaiclick.orchestration.store.reading.nodes import get_node
from aaiclick.orchestration.store.resources.grants import read_units
from aaiclick.orchestration.store.resources.units import remove_capacity, set_capacity
from tests.support.band import band
from tests.support.orchestra import Orchestra

__all__ = ["band"]


async def describe(band: Orchestra, name: str = "box", **resources: Any) -> int:
    node = NodeDescription(name, resources=resources)
    await band.coordinator.register(hostname="h", pid=2, node=node)
    found = await band.database.read(lambda session: get_node(session, name))
    assert found is not None
    assert found.resources == node.resources
    return found.id


async def units(band: Orchestra) -> list[Unit]:
    return (await band.database.read(read_units))[0]


async def test_the_newest_description_of_a_node_counts(band: Orchestra) -> None:
    box = await describe(band, gpu=2, cpu=1.5)
    assert await units(band) == [
        Unit(box, "cpu", 0, 1500),
        Unit(box, "gpu", 0, 1000, "0"),
        Unit(box, "gpu", 1, 1000, "1"),
    ]
    assert await describe(band, gpu=1, gpu_memory_mb=40) == box
    assert await units(band) == [Unit(box, "gpu", 0, 40_000, "0", 40)]
    await describe(band)
    assert await units(band) == []


async def test_a_node_that_is_removed_leaves_no_units(band: Orchestra) -> None:
    await describe(band, cpu=1)
    other = await describe(band, "other", cpu=2)
    await band.database.transact(lambda session: remove_node(session, "box", 9, force=True))
    assert await units(band) == [Unit(other, "cpu", 0, 2000)]


async def set_to(band: Orchestra, amount: float) -> None:
    await band.database.transact(lambda session: set_capacity(session, "seat", amount))


async def test_a_capacity_of_all_is_set_changed_and_removed(band: Orchestra) -> None:
    for amount in (3, 0.5):
        await set_to(band, amount)
        assert await units(band) == [Unit(0, "seat", 0, int(amount * 1000))]
    removed = [await band.database.transact(lambda session: remove_capacity(session, "seat")) for _ in range(2)]
    assert removed == [True, False]
    assert await units(band) == []


async def test_two_who_set_the_same_at_once_both_get_their_way(band: Orchestra) -> None:
    await asyncio.gather(*(set_to(band, amount) for amount in (1, 2, 3)))
    (unit,) = await units(band)
    assert unit.size in (1000, 2000, 3000)
