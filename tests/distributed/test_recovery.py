"""Recovery, by the names of the specification."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from aaiclick.distributed import DistributedTaskManager
from aaiclick.errors import Conflict
from aaiclick.orchestration import TaskStatus
from tests.distributed.conftest import HARDWARE, submitted


async def leases(manager: DistributedTaskManager) -> list[tuple[str, str]]:
    """Who holds what, as the view tells it."""
    asked = text("SELECT task_id, node_id, lease_token, expires_at FROM task_leases ORDER BY task_id")
    rows = await (await manager.database()).read(lambda session: session.rows(asked))
    assert all(row.lease_token and row.expires_at for row in rows)
    return [(str(row.task_id), row.node_id) for row in rows]


async def test_recover_expired_leases(manager: DistributedTaskManager) -> None:
    first, second, free = await submitted(3)
    for node, task_id in (("node-1", first), ("node-2", second)):
        await manager.register_node(node, HARDWARE)
        assert await manager.acquire_lease(task_id, node) is not None
    assert await leases(manager) == sorted([(first, "node-1"), (second, "node-2")])
    await (await manager.registry()).mark_stale("node-1")
    assert await manager.recover_stale_leases() == [first]
    assert await manager.recover_stale_leases() == []
    assert await leases(manager) == [(second, "node-2")]
    found = {str(task.id) for task in await manager.find_executable_tasks("node-2")}
    assert found == {first, free}


async def test_recover_on_node_crash(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    await manager.register_node("node-1", HARDWARE)
    lease = await manager.acquire_lease(task_id, "node-1")
    assert lease is not None
    await (await manager.registry()).mark_stale("node-1")
    await manager.recover_stale_leases()
    task = await manager.get_task(task_id)
    assert (task.status, task.lease_id) == (TaskStatus.PENDING, None)
    assert task.attempt_id > lease.attempt_id


async def test_reassign_to_healthy_node(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    for node in ("node-1", "node-2"):
        await manager.register_node(node, HARDWARE)
    old = await manager.acquire_lease(task_id, "node-1")
    assert old is not None
    await (await manager.registry()).mark_stale("node-1")
    await manager.recover_stale_leases()
    assert await manager.acquire_lease(task_id, "node-2") is not None
    await manager.register_node("node-1", HARDWARE)
    with pytest.raises(Conflict, match="has no lease"):
        await manager.report_completion(task_id, "node-1", 77)
    await manager.report_completion(task_id, "node-2", 3)
    task = await manager.get_task(task_id)
    assert (task.status, task.last_assigned_node) == (TaskStatus.COMPLETED, "node-2")
    asked = text(f"SELECT event_type FROM task_events WHERE task_id = {task_id} ORDER BY event_id")
    rows = await (await manager.database()).read(lambda session: session.rows(asked))
    assert [row.event_type for row in rows] == ["assigned", "lease_expired", "pending", "reassigned", "completed"]
