"""Names of the distributed design: nodes, leases and task managers, over the workers and claims that there are.

Each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "aaiclick.distributed.api_clients": ("APIClient",),
    "aaiclick.distributed.configuration": (
        "DistributedConfig",
        "DuckDBStorage",
        "PostgreSQLStorage",
        "SQLiteStorage",
    ),
    "aaiclick.distributed.node_registry": ("NodeRegistry",),
    "aaiclick.distributed.leases": ("TaskLease",),
    "aaiclick.distributed.task_managers": ("DistributedTaskManager", "TaskManager"),
    "aaiclick.distributed.execution_records": ("ExecutionRecord", "execute_with_idempotency"),
    "aaiclick.distributed.replicas": ("create_a2a_server",),
    "aaiclick.orchestration.models.node_info": ("NodeInfo",),
    "aaiclick.orchestration.rules.placement": ("PlacementConstraints", "satisfies_placement"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
