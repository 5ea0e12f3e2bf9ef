"""Registering nodes: by name, once, whoever comes first; the newest description counts."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import select, update

from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.nodes.registration import lock_node
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


async def register(band: Orchestra, name: str = "box", pid: int = 2, **facts: object) -> int:
    """The id of a new worker on that node."""
    node = NodeDescription(name, capabilities=facts)
    return (await band.coordinator.register(hostname="there", pid=pid, node=node)).id


async def test_several_workers_that_begin_at_once_are_of_one_node(band: Orchestra) -> None:
    await asyncio.gather(*(register(band, pid=pid, rack=7) for pid in range(2, 8)))
    (row,) = await band.rows(select(nodes))
    assert (row.name, row.pool, row.state, json.loads(row.executor_types)) == ("box", None, "open", ["python"])
    assert json.loads(row.capabilities) == {"rack": 7}


async def test_the_newest_description_counts(band: Orchestra) -> None:
    await register(band, rack=7, labels=["a"])
    (before,) = await band.rows(select(nodes))
    await register(band, labels=["b"])
    (after,) = await band.rows(select(nodes))
    assert json.loads(after.capabilities) == {"labels": ["b"]}
    assert (after.id, after.registered_at) == (before.id, before.registered_at)
    assert after.described_at > before.described_at


@pytest.mark.parametrize("state", ["cordoned", "draining"])
async def test_a_worker_that_begins_on_a_node_that_is_not_open_is_given_no_tasks(band: Orchestra, state: str) -> None:
    await register(band)
    await band.database.transact(lambda session: session.run(update(nodes).values(state=state)))
    await band.submit(make("t"))
    free, band.worker = band.worker, await register(band)
    assert await band.claim() == []
    assert await band.claim(0) == []  # its session goes on
    band.worker = free
    assert [claim.name for claim in await band.claim()] == ["t"]


@SERVERS
async def test_a_worker_waits_for_whoever_changes_its_node(band: Orchestra) -> None:
    await register(band)
    async with band.transaction() as session:
        assert await lock_node(session, "box") is not None
        begins = asyncio.create_task(register(band))
        await band.until_waiting()
        await session.run(update(nodes).values(state="cordoned"))
    band.worker = await begins
    await band.submit(make("t"))
    assert await band.claim() == []
