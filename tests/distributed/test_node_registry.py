"""The registry of nodes, by the names of the specification."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from aaiclick.distributed import DistributedTaskManager
from aaiclick.errors import NotFound, SessionOver
from tests.distributed.conftest import HARDWARE, submitted
from tests.support.orchestra import until


async def shown(manager: DistributedTaskManager) -> dict[str, str]:
    """The status of each node, as the view tells it."""
    asked = text("SELECT node_id, status FROM distributed_nodes")
    return {row.node_id: row.status for row in await (await manager.database()).read(lambda each: each.rows(asked))}


async def test_node_registration(manager: DistributedTaskManager) -> None:
    registry = await manager.registry()
    node = await registry.register_node(
        node_id="worker-1", capabilities=HARDWARE, executor_types=["rest_executor", "docker_executor"]
    )
    assert (node.name, node.capabilities, node.status) == ("worker-1", HARDWARE, "healthy")
    assert node.executor_types == ["rest", "docker"]
    again = await manager.register_node("worker-1", {"cpu_cores": 4})
    assert (again.id, again.capabilities, again.workers) == (node.id, {"cpu_cores": 4}, 1)
    assert [each.name for each in await registry.list_nodes()] == ["worker-1"]
    with pytest.raises(NotFound):
        await registry.get_node("nobody")


async def test_node_heartbeat(manager: DistributedTaskManager) -> None:
    before = await manager.register_node("worker-1", HARDWARE)
    await manager.heartbeat("worker-1")
    after = await (await manager.registry()).get_node("worker-1")
    assert before.last_heartbeat is not None
    assert after.last_heartbeat is not None
    assert after.last_heartbeat >= before.last_heartbeat
    with pytest.raises(NotFound):
        await manager.heartbeat("nobody")


async def test_node_stale_detection(manager: DistributedTaskManager) -> None:
    registry = await manager.registry()
    await manager.register_node("worker-1", HARDWARE)
    await registry.mark_stale("worker-1")
    assert (await registry.get_node("worker-1")).status == "stale"

    async def is_stale() -> bool:
        return await shown(manager) == {"worker-1": "stale"}

    await until(is_stale)  # SQLite's own clock has milliseconds
    await manager.heartbeat("worker-1")
    assert (await registry.get_node("worker-1")).status == "healthy"
    assert await shown(manager) == {"worker-1": "healthy"}
    await registry.mark_stale("worker-1")
    await manager.recover_stale_leases()
    assert (await registry.get_node("worker-1")).status == "dead"
    assert await shown(manager) == {"worker-1": "dead"}
    with pytest.raises(SessionOver):
        await manager.heartbeat("worker-1")


async def test_node_deregistration(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    await manager.register_node("worker-1", HARDWARE)
    assert await manager.acquire_lease(task_id, "worker-1") is not None
    await manager.deregister_node("worker-1")
    with pytest.raises(SessionOver):
        await manager.acquire_lease(task_id, "worker-1")
    assert await manager.recover_stale_leases() == [task_id]
