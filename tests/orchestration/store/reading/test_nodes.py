"""Reading nodes: their workers count while these have a session, and their claims with them."""

from __future__ import annotations

from aaiclick.orchestration.models.node_info import NodeDescription, NodeInfo
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.store import workers
from aaiclick.orchestration.store.nodes.states import set_state
from aaiclick.orchestration.store.reading.nodes import get_node, list_nodes
from tests.support.band import band
from tests.support.orchestra import Orchestra, expire, make

__all__ = ["band"]


async def begin(band: Orchestra, name: str, slots: int = 1, **facts: str) -> int:
    node = NodeDescription(name, pool=facts.pop("pool", None), capabilities=dict(facts))
    return (await band.coordinator.register(hostname="there", pid=2, concurrency=slots, node=node)).id


async def read(band: Orchestra, name: str) -> NodeInfo:
    found = await band.database.read(lambda session: get_node(session, name))
    assert found is not None
    return found


async def test_a_node_has_the_slots_and_runs_of_its_workers_that_have_a_session(band: Orchestra) -> None:
    first, gone = await begin(band, "box", 3, gpu="nvidia"), await begin(band, "box", 5, gpu="nvidia")
    await band.submit(make("a"), make("b"), make("c"))
    band.worker = first
    await band.claim(2)
    await band.coordinator.deregister(gone)
    node = await read(band, "box")
    assert (node.status, node.state, node.workers, node.slots, node.running) == ("healthy", "open", 1, 3, 2)
    assert node.capabilities == {"gpu": "nvidia"}


async def test_a_node_whose_heartbeats_stay_away_is_stale_and_then_dead(band: Orchestra) -> None:
    worker = await begin(band, "box")
    await expire(band, worker)
    assert (await read(band, "box")).status == "stale"
    await band.database.transact(workers.expire_sessions)
    node = await read(band, "box")
    assert (node.status, node.workers, node.last_heartbeat) == ("dead", 0, None)


async def test_nodes_are_listed_by_name_in_pages_and_chosen_by_state_and_pool(band: Orchestra) -> None:
    for name, pool in (("b", "x"), ("A", "y"), ("c", "x"), ("a", "x")):
        await begin(band, name, pool=pool)
    await band.database.transact(lambda session: set_state(session, "c", NodeState.DRAINING))

    async def names(**choice: object) -> list[str]:
        return [node.name for node in await band.database.read(lambda s: list_nodes(s, **choice))]  # type: ignore[arg-type]

    assert await names() == ["A", "a", "b", "c"]
    assert await names(limit=2) == ["A", "a"]
    assert await names(limit=2, after="a") == ["b", "c"]
    assert await names(pool="x", state=NodeState.OPEN) == ["a", "b"]
    assert await band.database.read(lambda session: get_node(session, "B")) is None
