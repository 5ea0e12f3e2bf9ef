"""What task managers are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.distributed import (
    DistributedConfig,
    DistributedTaskManager,
    DuckDBStorage,
    PostgreSQLStorage,
    SQLiteStorage,
    TaskManager,
)
from aaiclick.errors import Conflict, InputError


def test_storages_are_addresses_of_the_state(tmp_path: Path) -> None:
    assert SQLiteStorage(tmp_path / "x.db").url == f"sqlite+aiosqlite:///{tmp_path}/x.db"
    assert PostgreSQLStorage(url="postgresql://a:b@c:5/d").url == "postgresql+asyncpg://a:b@c:5/d"
    assert PostgreSQLStorage(url="postgresql://...").url == "postgresql+asyncpg://..."
    with pytest.raises(InputError, match="SQLiteStorage"):
        DuckDBStorage(path="apflow.db")
    with pytest.raises(InputError, match="PostgreSQL"):
        PostgreSQLStorage(url="mysql://x")


def test_the_longer_of_two_times_is_the_session() -> None:
    assert DistributedConfig(heartbeat_timeout_seconds=10, lease_duration_seconds=60).session_s == 60
    assert DistributedConfig(heartbeat_timeout_seconds=90).session_s == 90


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", "leader"),
        ("node_id", "a\nb"),
        ("lease_duration_seconds", 0),
        ("cleanup_interval_seconds", -1),
        ("poll_interval_seconds", "often"),
    ],
)
def test_what_cannot_be_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=field):
        DistributedConfig(**{field: value})


def test_what_a_node_has_is_checked_with_its_name() -> None:
    with pytest.raises(InputError, match="capabilit"):
        DistributedConfig(node_id="a", capabilities={"gpu": object()})


async def test_a_manager_is_distributed_if_it_is_told_how(tmp_path: Path) -> None:
    storage = SQLiteStorage(tmp_path / "state.db")
    assert type(TaskManager(storage=storage, distributed=None)) is TaskManager
    assert type(TaskManager(storage=storage, distributed=DistributedConfig())) is DistributedTaskManager
    async with TaskManager(storage=storage) as manager:
        assert await manager.list_tasks() == []
    with pytest.raises(InputError, match="storage"):
        await TaskManager().list_tasks()


async def test_with_a_coordinators_address_the_storage_is_not_opened(tmp_path: Path) -> None:
    config = DistributedConfig(mode="worker", node_id="worker-1", coordinator_url="http://coordinator:8000")
    manager = TaskManager(storage=SQLiteStorage(tmp_path / "state.db"), distributed=config)
    with pytest.raises(Conflict, match="--coordinator"):
        await manager.list_tasks()
    assert not (tmp_path / "state.db").exists()
