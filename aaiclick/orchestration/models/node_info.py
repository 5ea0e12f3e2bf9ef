"""Nodes of the fleet: the machines whose workers run tasks. (`models/node` has the nodes of a graph.)"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aaiclick.orchestration.rules.naming.executor_names import PYTHON
from aaiclick.orchestration.rules.nodes import NodeState, NodeStatus, check_capabilities, check_executors
from aaiclick.orchestration.rules.resources import check_offer
from aaiclick.orchestration.rules.validation import check_name


@dataclass(slots=True, frozen=True)
class NodeDescription:
    """What a worker says of its machine when it registers. Workers of the same name are of one node."""

    name: str
    pool: str | None = None
    capabilities: dict[str, Any] = field(default_factory=dict)
    executor_types: list[str] = field(default_factory=lambda: [PYTHON])
    resources: dict[str, Any] = field(default_factory=dict)
    """What it can grant to tasks: amounts by name, and for `gpu` a list of GPUs."""

    def __post_init__(self) -> None:
        check_name(self.name, "Node name")
        if self.pool is not None:
            check_name(self.pool, "pool")
        object.__setattr__(self, "capabilities", check_capabilities(self.capabilities))
        object.__setattr__(self, "executor_types", check_executors(self.executor_types))
        object.__setattr__(self, "resources", check_offer(self.resources))


@dataclass(slots=True, frozen=True)
class NodeInfo:
    """A node as of when it was read."""

    id: int
    name: str
    pool: str | None
    state: NodeState
    capabilities: Mapping[str, Any]
    executor_types: list[str]
    registered_at: datetime
    described_at: datetime
    """When one of its workers last said what it has."""
    resources: Mapping[str, Any] = field(default_factory=dict)
    """What it can grant to tasks: amounts by name, and for `gpu` a list of GPUs."""
    status: NodeStatus = NodeStatus.DEAD
    last_heartbeat: datetime | None = None
    """The newest heartbeat of its workers that have a session."""
    workers: int = 0
    """The number of its workers that have a session."""
    slots: int = 0
    """How many tasks these can run at a time."""
    running: int = 0
    """How many tasks these have claimed."""

    @property
    def node_id(self) -> str:
        """Another name of `name`."""
        return self.name

    @classmethod
    def from_row(cls, row: Any, **facts: Any) -> NodeInfo:
        """Make a node from a row of the `nodes` table, and what is known of its workers."""
        stored = dict(row._mapping)
        stored["state"] = NodeState(stored["state"])
        for name in ("capabilities", "executor_types", "resources"):
            stored[name] = json.loads(stored[name] or "{}")
        return cls(**stored, **facts)
