"""A manager of a fleet on a file of its own, with a job of several tasks. Nothing here waits for a clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.distributed import DistributedConfig, DistributedTaskManager, SQLiteStorage, TaskManager
from aaiclick.orchestration import Task, as_task, create_job
from tests.orchestration import sample_flows as flows

HARDWARE: dict[str, Any] = {
    "cpu_cores": 8,
    "memory_gb": 32,
    "gpu": "nvidia",
    "labels": ["high-compute", "ml-optimized"],
}


@pytest.fixture
async def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DistributedTaskManager]:
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path))
    monkeypatch.setenv("AAICLICK_SQL_URL", SQLiteStorage(tmp_path / "state.db").url)
    reset_settings()
    made = TaskManager(storage=SQLiteStorage(tmp_path / "state.db"), distributed=DistributedConfig(mode="coordinator"))
    assert isinstance(made, DistributedTaskManager)
    async with made:
        yield made
    reset_settings()


async def submitted(count: int = 1, **options: Any) -> list[str]:
    """The ids of so many ready tasks that add 1 and 2, as texts."""
    made: list[Task[Any]] = [as_task(flows.add.options(**options)(1, 2)) for _ in range(count)]
    await create_job("work", tasks=made)
    return [str(task.id) for task in made]
