"""The snippets of the specification as printed; where one cannot run so, the test says what differs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

import aaiclick.distributed as door
from aaiclick.config import reset_settings
from aaiclick.distributed import DistributedTaskManager, ExecutionRecord, NodeInfo, PlacementConstraints
from aaiclick.distributed import satisfies_placement as ours
from aaiclick.errors import InputError
from tests.distributed.conftest import submitted

LEASE = """
lease = await manager.acquire_lease("task_123", "node-1", duration=30s)
await lease.renew(duration=30s)  # Non-blocking
"""

REGISTER = """
await registry.register_node(
    node_id="worker-1",
    capabilities={
        "cpu_cores": 8,
        "memory_gb": 32,
        "gpu": "nvidia",
        "labels": ["high-compute", "ml-optimized"],
    },
    executor_types=["rest_executor", "docker_executor"],
)
async def health_check_loop():
    while True:
        nodes = await registry.list_nodes()
        for node in nodes:
            if not await ping(node.node_id):
                await registry.mark_stale(node.node_id)
        await asyncio.sleep(10)
async def heartbeat_loop():
    while True:
        await registry.heartbeat(node_id)
        await asyncio.sleep(5)
"""

PLACEMENT = """
def satisfies_placement(constraints, node):
    # Check executor compatibility
    if constraints.requires_executors:
        if not any(e in node.executor_types for e in constraints.requires_executors):
            return False

    # Check capability requirements
    if constraints.requires_capabilities:
        for key, required_value in constraints.requires_capabilities.items():
            if key not in node.capabilities or node.capabilities[key] != required_value:
                return False

    # Check node whitelist/blacklist
    if constraints.allowed_nodes and node.node_id not in constraints.allowed_nodes:
        return False
    if constraints.forbidden_nodes and node.node_id in constraints.forbidden_nodes:
        return False

    return True
"""

LONG = '''
async def execute_long_task(task_id, lease):
    """Long task that may take hours."""

    async def renew_periodically():
        while True:
            await asyncio.sleep(20)  # Renew every 20s, expire in 30s
            await lease.renew(duration=30)

    renew_task = asyncio.create_task(renew_periodically())

    try:
        result = await some_long_operation()
    finally:
        renew_task.cancel()

    return result
'''

MANAGERS = """
manager = TaskManager(
    storage=SQLiteStorage(path="apflow.db"),
    distributed=None,  # Disabled
)
manager = TaskManager(
    storage=PostgreSQLStorage(url="postgresql://..."),
    distributed=DistributedConfig(
        mode="coordinator",
        node_id="api-main",
        heartbeat_timeout_seconds=30,
        lease_duration_seconds=30,
        cleanup_interval_seconds=10,
    ),
)
manager = TaskManager(
    storage=PostgreSQLStorage(url="postgresql://..."),
    distributed=DistributedConfig(
        mode="worker",
        node_id="worker-1",
        coordinator_url="http://coordinator:8000",
        capabilities={
            "cpu_cores": 8,
            "memory_gb": 32,
            "gpu": "nvidia",
            "labels": ["high-compute"],
        },
        executor_types=["rest_executor", "docker_executor"],
        poll_interval_seconds=5,
    ),
)
manager = TaskManager(storage=PostgreSQLStorage(url="postgresql://..."))
manager = TaskManager(
    storage=PostgreSQLStorage(url="postgresql://..."),
    distributed=None,
)
manager = TaskManager(
    storage=PostgreSQLStorage(url="postgresql://..."),
    distributed=DistributedConfig(mode="coordinator"),
)
manager = TaskManager(
    storage=PostgreSQLStorage(url="postgresql://..."),
    distributed=DistributedConfig(
        mode="worker",
        node_id="worker-1",
        coordinator_url="http://coordinator:8000",
    ),
)
"""

REPLICA = """
api_replica = create_a2a_server(
    mode="distributed_replica",
    coordinator_url="http://coordinator:8000",
)
"""


def run(text: str, **names: Any) -> dict[str, Any]:
    """Run a snippet with all public names, and these."""
    space = {name: getattr(door, name) for name in door.__all__} | names
    exec(compile(text, "the specification", "exec"), space)  # noqa: S102 (a snippet, as printed)
    return space


async def awaiting(text: str, **names: Any) -> dict[str, Any]:
    """The same for a snippet that awaits."""
    body = "".join(f"    {line}\n" for line in text.strip().splitlines())
    found: dict[str, Any] = await run(f"async def main():\n{body}    return locals()\n", **names)["main"]()
    return found


async def test_a_duration_is_a_number(manager: DistributedTaskManager) -> None:
    """«30s» is no Python; seconds are a number. And ids are the system's: `task_123` is none."""
    with pytest.raises(SyntaxError):
        await awaiting(LEASE, manager=manager)
    (task_id,) = await submitted()
    await manager.register_node("node-1", {})
    as_python = LEASE.replace("30s", "30").replace("task_123", task_id)
    lease = (await awaiting(as_python, manager=manager))["lease"]
    assert lease.node_id == "node-1"
    with pytest.raises(InputError, match="digits"):
        await manager.acquire_lease("task_123", "node-1")


async def test_nodes_are_registered_and_looked_after(manager: DistributedTaskManager) -> None:
    """Nodes have no address that could be pinged, here `node.url` there: the check is given the node's name."""
    asked: list[str] = []

    async def ping(node_id: str) -> bool:
        asked.append(node_id)
        return False

    registry = await manager.registry()
    found = await awaiting(REGISTER, registry=registry, ping=ping, node_id="worker-1", asyncio=asyncio)
    for loop in ("health_check_loop", "heartbeat_loop"):
        running = asyncio.create_task(found[loop]())
        status = {"health_check_loop": "stale", "heartbeat_loop": "healthy"}[loop]
        while (await registry.get_node("worker-1")).status != status:  # noqa: ASYNC110 (there is no event to wait for)
            await asyncio.sleep(0)
        running.cancel()
    assert asked == ["worker-1"]


def test_constraints_have_the_printed_fields_and_defaults() -> None:
    printed = {"requires_executors", "requires_capabilities", "max_parallel_per_node", "allowed_nodes"}
    assert printed | {"forbidden_nodes"} <= {field.name for field in fields(PlacementConstraints)}
    assert PlacementConstraints(requires_executors=[], requires_capabilities={}).max_parallel_per_node == 1


CASES: list[Mapping[str, Any]] = [
    {},
    {"requires_executors": ["rest", "shell"]},
    {"requires_executors": ["shell"]},
    {"requires_capabilities": {"gpu": "nvidia", "cpu_cores": 8}},
    {"requires_capabilities": {"gpu": "amd"}},
    {"requires_capabilities": {"tpu": 1}},
    {"allowed_nodes": ["worker-1"]},
    {"allowed_nodes": ["other"]},
    {"forbidden_nodes": ["worker-1"]},
    {"forbidden_nodes": ["other"]},
]


async def test_placement_is_decided_as_printed(manager: DistributedTaskManager) -> None:
    """An executor is called `rest` here, whatever it was called when it was registered."""
    node = await manager.register_node("worker-1", {"gpu": "nvidia", "cpu_cores": 8}, ["rest_executor"])
    assert isinstance(node, NodeInfo)
    printed = run(PLACEMENT)["satisfies_placement"]
    asked = [PlacementConstraints(**case) for case in CASES]
    decided = [(ours(each, node), printed(each, node)) for each in asked]
    assert [one == other for one, other in decided] == [True] * len(CASES)
    assert [one for one, _ in decided] == [True, True, False, True, False, False, True, False, False, True]


async def test_a_long_task_renews_its_lease(manager: DistributedTaskManager) -> None:
    (task_id,) = await submitted()
    await manager.register_node("node-1", {})
    lease = await manager.acquire_lease(task_id, "node-1")

    async def some_long_operation() -> int:
        return 3

    execute = run(LONG, asyncio=asyncio, some_long_operation=some_long_operation)["execute_long_task"]
    assert await execute(task_id, lease) == 3


def test_managers_are_made_as_printed() -> None:
    """But for DuckDBStorage, in whose place SQLiteStorage stands."""
    assert type(run(MANAGERS)["manager"]) is DistributedTaskManager
    with pytest.raises(InputError, match="SQLiteStorage"):
        run(MANAGERS.replace("SQLite", "DuckDB"))


def test_a_replica_is_made_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token is that of the settings; what it answers is in tests/server/replicas."""
    monkeypatch.setenv("AAICLICK_API_TOKEN", "aai_1_x")
    reset_settings()
    assert run(REPLICA)["api_replica"].title == "aaiclick"
    monkeypatch.delenv("AAICLICK_API_TOKEN")
    reset_settings()


def test_the_manager_has_the_eight_methods() -> None:
    eight = {
        "register_node": ["node_id", "capabilities"],
        "heartbeat": ["node_id"],
        "deregister_node": ["node_id"],
        "find_executable_tasks": ["node_id"],
        "acquire_lease": ["task_id", "node_id", "constraints"],
        "renew_lease": ["lease"],
        "report_completion": ["task_id", "node_id", "result", "idempotency_key"],
        "recover_stale_leases": [],
    }
    for name, parameters in eight.items():
        method = getattr(DistributedTaskManager, name)
        assert inspect.iscoroutinefunction(method)
        assert list(inspect.signature(method).parameters)[1 : 1 + len(parameters)] == parameters


def test_an_execution_record_has_the_printed_fields() -> None:
    assert [field.name for field in fields(ExecutionRecord)] == [
        *("task_id", "attempt_id", "idempotency_key", "result", "status")
    ]
