"""The fleet as a whole, by the names of the specification. Bodies run in this process; the kill is of a real worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from aaiclick.distributed import (
    DistributedConfig,
    DistributedTaskManager,
    SQLiteStorage,
    TaskManager,
    execute_with_idempotency,
)
from aaiclick.orchestration import TaskStatus, as_task, create_job, get_job, get_job_result
from tests.distributed.conftest import HARDWARE, submitted
from tests.orchestration import sample_flows as flows
from tests.support.fleet import Fleet, all_gone, eventually, fleet

__all__ = ["fleet"]


async def work(manager: DistributedTaskManager, node_id: str) -> int:
    """What a node does: it looks for tasks and runs them, until there are none; returns how many."""
    done = 0
    while found := await manager.find_executable_tasks(node_id):
        for task in found:
            if await manager.acquire_lease(task.id, node_id) is not None:
                await manager.report_completion(task.id, node_id, done)
                done += 1
    return done


async def test_end_to_end_task_execution(manager: DistributedTaskManager) -> None:
    three = flows.add(1, 2)
    first, second = as_task(three), as_task(flows.add(three, 4))
    job = await create_job("tree", second)
    await manager.register_node("worker-1", HARDWARE)
    assert [task.id for task in await manager.find_executable_tasks("worker-1")] == [first.id]
    for task in (first, second):
        await execute_with_idempotency(manager, task.id, "worker-1")
    found = await get_job(job.id)
    assert found is not None
    assert found.status == "completed"
    assert await get_job_result(job.id) == 7


async def test_multiple_workers_same_tree(manager: DistributedTaskManager) -> None:
    await submitted(12)
    names = [f"worker-{number}" for number in range(4)]
    for name in names:
        await manager.register_node(name, HARDWARE)
    done = await asyncio.gather(*(work(manager, name) for name in names))
    assert sum(done) == 12, "each task is leased once"
    assert {task.status for task in await manager.list_tasks()} == {TaskStatus.COMPLETED}


async def test_coordinator_failure_and_recovery(manager: DistributedTaskManager, tmp_path: Path) -> None:
    """The state is in the database: another coordinator goes on where one was, and leases stay what they were."""
    first, second = await submitted(2)
    await manager.register_node("worker-1", HARDWARE)
    lease = await manager.acquire_lease(first, "worker-1")
    assert lease is not None
    await manager.close()
    other = TaskManager(storage=SQLiteStorage(tmp_path / "state.db"), distributed=DistributedConfig())
    assert isinstance(other, DistributedTaskManager)
    async with other:
        assert await other.recover_stale_leases() == []
        await other.report_completion(first, "worker-1", 3, lease.idempotency_key)
        assert await other.acquire_lease(second, "worker-1") is not None
        assert (await other.get_task(first)).status == TaskStatus.COMPLETED


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_worker_failure_during_execution(fleet: Fleet, tmp_path: Path) -> None:
    """kill -9 of a worker process under its body; another one does the work, and the task counts once."""
    fleet.env["AAICLICK_SESSION_SECONDS"] = "30"
    (doomed,) = await fleet.workers(1, "--no-control")
    task = fleet.errand("waits")
    job = await fleet.submit(task)
    await fleet.noted("began", 1)
    family, session = doomed.family(), await fleet.session_of(doomed)
    doomed.kill()
    await all_gone(family)
    url = fleet.env["AAICLICK_SQL_URL"]
    made = TaskManager(storage=SQLiteStorage(url.partition("///")[2]), distributed=DistributedConfig())
    assert isinstance(made, DistributedTaskManager)
    async with made as manager:
        assert isinstance(manager, DistributedTaskManager)
        registry = await manager.registry()
        (node,) = {each.name for each in await registry.list_nodes()}
        assert await registry.worker_of(node) == session
        await registry.mark_stale(node)
        assert await manager.recover_stale_leases() == [str(task.id)]
        await fleet.workers(1)
        await fleet.noted("began", 2)
        fleet.let()

        async def has_ended() -> bool:
            return (await manager.get_task(task.id)).status == TaskStatus.COMPLETED

        await eventually(has_ended, fleet.explain)
    assert await fleet.outcomes(task) == ["lost", "completed"]
    assert (await fleet.end_of(job)).status == "completed"


async def test_long_running_task_with_heartbeat(manager: DistributedTaskManager) -> None:
    """As the specification prints it; the pauses are those of a body that lets others run."""
    (task_id,) = await submitted()
    await manager.register_node("worker-1", HARDWARE)
    lease = await manager.acquire_lease(task_id, "worker-1")
    assert lease is not None
    renewed = asyncio.Event()

    async def renew_periodically() -> None:
        while True:
            await asyncio.sleep(0)  # 20 there
            await lease.renew(duration=30)
            renewed.set()

    renew_task = asyncio.create_task(renew_periodically())
    try:
        for _ in range(3):
            await (await manager.registry()).mark_stale("worker-1")
            renewed.clear()
            await renewed.wait()
            assert await manager.recover_stale_leases() == []
    finally:
        renew_task.cancel()
    await manager.report_completion(task_id, "worker-1", 3, lease.idempotency_key)
    assert (await manager.get_task(task_id)).status == TaskStatus.COMPLETED
