"""Leases and idempotency, by the names of the specification."""

from __future__ import annotations

import pytest

from aaiclick.distributed import DistributedTaskManager, TaskLease, execute_with_idempotency, execution_records
from aaiclick.distributed.execution_records import list_records
from aaiclick.errors import ClaimLost, Conflict, IdempotencyConflict, SessionOver
from aaiclick.orchestration import TaskStatus, as_task, create_job
from aaiclick.orchestration.execution.runs.runner import run_claim
from aaiclick.orchestration.models import Claim, Report
from tests.distributed.conftest import HARDWARE, submitted
from tests.orchestration import sample_flows as flows


async def lease_of(manager: DistributedTaskManager, task_id: str, node_id: str = "node-1") -> TaskLease:
    lease = await manager.acquire_lease(task_id, node_id)
    assert lease is not None
    return lease


async def test_acquire_lease_success(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    await manager.register_node("node-1", HARDWARE)
    lease = await lease_of(manager, task_id)
    assert (lease.task_id, lease.node_id, lease.attempt_id) == (task_id, "node-1", 1)
    assert lease.expires_at > lease.acquired_at
    task = await manager.get_task(task_id)
    assert (task.status, task.lease_id, task.attempt_id) == (TaskStatus.CLAIMED, lease.lease_id, 1)
    assert (task.lease_expires_at, task.last_assigned_node) == (lease.expires_at, "node-1")
    assert task.placement_constraints is None


async def test_acquire_lease_already_held(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    for node in ("node-1", "node-2"):
        await manager.register_node(node, HARDWARE)
    await lease_of(manager, task_id)
    assert await manager.acquire_lease(task_id, "node-2") is None
    assert await manager.acquire_lease(task_id, "node-1") is None
    with pytest.raises(Conflict, match="has no lease"):
        await manager.report_completion(task_id, "node-2", 3)


async def test_lease_expiry_detection(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    await manager.register_node("node-1", HARDWARE)
    lease = await lease_of(manager, task_id)
    assert await manager.recover_stale_leases() == []
    await (await manager.registry()).mark_stale("node-1")
    assert await manager.recover_stale_leases() == [task_id]
    with pytest.raises(SessionOver):
        await manager.renew_lease(lease)


async def test_lease_renewal(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    await manager.register_node("node-1", HARDWARE)
    lease = await lease_of(manager, task_id)
    first = lease.expires_at
    await lease.renew(duration=300)
    assert (lease.expires_at - first).total_seconds() > 200
    await manager.renew_lease(lease)
    await (await manager.registry()).mark_stale("node-1")
    await lease.renew()
    assert await manager.recover_stale_leases() == [], "it was renewed before anybody looked"


async def test_idempotent_execution_cached_result(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    await manager.register_node("node-1", HARDWARE)
    assert await execute_with_idempotency(manager, task_id, "node-1") == 3
    assert await execute_with_idempotency(manager, task_id, "node-2") == 3, "remembered: no node is asked"
    (record,) = await list_records(manager, task_id)
    assert (record.status, record.result, record.idempotency_key) == ("completed", 3, f"{task_id}-0")
    await manager.report_completion(task_id, "node-1", 3, f"{task_id}-0")
    with pytest.raises(IdempotencyConflict):
        await manager.report_completion(task_id, "node-1", 3, "another key")


async def test_idempotent_execution_retry_with_new_attempt(manager: DistributedTaskManager) -> None:
    task = as_task(flows.add.options(max_retries=1)(1, 2))
    await create_job("work", tasks=[task])
    await manager.register_node("node-1", HARDWARE)
    lost = await lease_of(manager, str(task.id))
    await (await manager.registry()).mark_stale("node-1")
    await manager.recover_stale_leases()
    await manager.register_node("node-1", HARDWARE)
    again = await lease_of(manager, str(task.id))
    assert again.attempt_id > lost.attempt_id
    assert again.idempotency_key == lost.idempotency_key, "else the retry would never find what was remembered"
    await manager.report_completion(task.id, "node-1", 3, again.idempotency_key)
    statuses = [record.status for record in await list_records(manager, task.id)]
    assert statuses == ["failed", "completed"]


async def test_a_result_that_nobody_took_is_not_returned(
    manager: DistributedTaskManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease ended while the body ran: others run the task, and theirs counts."""
    (task_id,) = await submitted()
    await manager.register_node("node-1", HARDWARE)

    async def slow(claim: Claim) -> Report:
        report = await run_claim(claim)
        await (await manager.coordinator()).release(claim.worker_id, [claim])
        return report

    monkeypatch.setattr(execution_records, "run_claim", slow)
    with pytest.raises(ClaimLost):
        await execute_with_idempotency(manager, task_id, "node-1")
    monkeypatch.undo()
    assert (await manager.get_task(task_id)).status == TaskStatus.PENDING
