"""The views `distributed_nodes` and `task_leases`, on every database."""

from __future__ import annotations

from sqlalchemy import text

from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.store.nodes.heartbeats import expire_node, sessions_of
from aaiclick.orchestration.store.workers import expire_sessions
from tests.support.band import band
from tests.support.orchestra import Orchestra, make, until

__all__ = ["band"]


async def statuses(band: Orchestra) -> dict[str, str]:
    rows = await band.rows(text("SELECT node_id, status FROM distributed_nodes"))
    return {row.node_id: row.status for row in rows}


async def test_nodes_are_healthy_stale_or_dead_by_the_databases_clock(band: Orchestra) -> None:
    made = await band.coordinator.register(hostname="h", pid=1, node=NodeDescription("gpu", "pool", {"gpu": "a"}))
    assert await band.database.read(lambda session: sessions_of(session, "gpu")) == [made.id]
    assert await statuses(band) == {"gpu": "healthy"}
    (row,) = await band.rows(text("SELECT executor_types, capabilities, heartbeat_at FROM distributed_nodes"))
    assert ('"python"' in str(row.executor_types).replace("'", '"'), row.heartbeat_at is not None) == (True, True)
    assert await band.database.transact(lambda session: expire_node(session, "gpu")) == 1

    async def is_stale() -> bool:
        return await statuses(band) == {"gpu": "stale"}

    await until(is_stale)
    await band.database.transact(expire_sessions)
    assert await statuses(band) == {"gpu": "dead"}


async def test_a_lease_is_a_claim_and_tells_no_secret(band: Orchestra) -> None:
    made = await band.coordinator.register(hostname="h", pid=1, node=NodeDescription("gpu"))
    await band.submit(make("a"), make("b"))
    (plain,) = await band.claim(limit=1)
    (claim,) = await band.coordinator.claim(made.id, limit=1)
    rows = await band.rows(text("SELECT * FROM task_leases ORDER BY task_id"))
    assert [(row.task_id, row.node_id) for row in rows] == [(plain.task_id, None), (claim.task_id, "gpu")]
    assert rows[1].lease_token == f"{made.id}-{claim.task_id}-{claim.epoch}"
    assert rows[1].expires_at > rows[1].acquired_at
    await band.complete(plain)
    assert len(await band.rows(text("SELECT * FROM task_leases"))) == 1
