"""Placement, by the names of the specification."""

from __future__ import annotations

from aaiclick.distributed import DistributedTaskManager, PlacementConstraints, satisfies_placement
from aaiclick.orchestration import as_task, create_job
from tests.distributed.conftest import HARDWARE, submitted
from tests.orchestration import sample_flows as flows


async def found(manager: DistributedTaskManager, node_id: str) -> set[str]:
    return {str(task.id) for task in await manager.find_executable_tasks(node_id)}


async def nodes(manager: DistributedTaskManager) -> None:
    await manager.register_node("rich", HARDWARE, ["rest_executor", "docker_executor"])
    await manager.register_node("poor", {"cpu_cores": 1})


async def test_placement_executor_constraint(manager: DistributedTaskManager) -> None:
    await nodes(manager)
    (task_id,) = await submitted(placement=PlacementConstraints(requires_executors=["rest_executor", "shell"]))
    assert await found(manager, "rich") == {task_id}
    assert await found(manager, "poor") == set()


async def test_placement_capability_constraint(manager: DistributedTaskManager) -> None:
    await nodes(manager)
    wanted = PlacementConstraints(requires_capabilities={"gpu": "nvidia", "labels": "ml-optimized"})
    (task_id,) = await submitted(placement=wanted)
    assert (await found(manager, "rich"), await found(manager, "poor")) == ({task_id}, set())
    assert await manager.acquire_lease(task_id, "poor") is None
    assert satisfies_placement(wanted, await (await manager.registry()).get_node("rich"))
    task = await manager.get_task(task_id)
    assert task.placement_constraints is not None
    assert task.placement_constraints["where"] == [["gpu", "==", "nvidia"], ["labels", "==", "ml-optimized"]]
    assert await manager.acquire_lease(task_id, "rich") is not None


async def test_placement_whitelist(manager: DistributedTaskManager) -> None:
    await nodes(manager)
    (task_id,) = await submitted(placement=PlacementConstraints(allowed_nodes=["poor"]))
    assert (await found(manager, "rich"), await found(manager, "poor")) == (set(), {task_id})


async def test_placement_blacklist(manager: DistributedTaskManager) -> None:
    await nodes(manager)
    (task_id,) = await submitted(placement=PlacementConstraints(forbidden_nodes=["poor"]))
    assert (await found(manager, "rich"), await found(manager, "poor")) == ({task_id}, set())
    (free,) = await submitted()
    assert await manager.acquire_lease(free, "poor", PlacementConstraints(forbidden_nodes=["poor"])) is None


async def test_placement_concurrency_limit(manager: DistributedTaskManager) -> None:
    await nodes(manager)
    limited = PlacementConstraints(max_parallel_per_node=1)
    first, second = await submitted(2, placement=limited)
    assert await found(manager, "rich") == {first, second}
    assert await manager.acquire_lease(first, "rich") is not None
    assert await found(manager, "rich") == set()
    assert await manager.acquire_lease(second, "rich") is None
    assert await found(manager, "poor") == {second}
    other = as_task(flows.echo(1))
    await create_job("other", tasks=[other])
    assert await found(manager, "rich") == {str(other.id)}


async def test_what_was_lost_on_a_node_is_leased_to_another_as_long_as_there_is_one(
    manager: DistributedTaskManager,
) -> None:
    (task_id,) = await submitted(placement={"retry_node": "other"})
    registry = await manager.registry()
    await manager.register_node("node-1", HARDWARE)
    assert await manager.acquire_lease(task_id, "node-1") is not None
    await registry.mark_stale("node-1")
    assert await manager.recover_stale_leases() == [task_id]
    for node in ("node-1", "node-2"):
        await manager.register_node(node, HARDWARE)
    assert await manager.find_executable_tasks("node-1") == []
    assert await manager.acquire_lease(task_id, "node-1") is None
    assert [str(task.id) for task in await manager.find_executable_tasks("node-2")] == [task_id]
    await registry.mark_stale("node-2")
    await manager.recover_stale_leases()
    assert await manager.acquire_lease(task_id, "node-1") is not None, "no other node is left"
