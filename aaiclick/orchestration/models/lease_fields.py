"""Read-only fields of a task by the names of the distributed design."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from aaiclick.orchestration.models.front_door import ask
from aaiclick.orchestration.rules.states import LIVE_TASK, TaskStatus


class LeaseFields:
    """What a task says of its claim as of a lease. Some of it is read from the database when it is asked for."""

    __slots__ = ()

    id: int
    epoch: int
    status: TaskStatus
    worker_id: int | None

    @property
    def attempt_id(self) -> int:
        """The number of its run, which grows with every claim: its epoch."""
        return self.epoch

    @property
    def lease_id(self) -> str | None:
        """The name of the claim that it is under; None if nobody has claimed it."""
        held = self.status in LIVE_TASK and self.worker_id is not None
        return f"{self.worker_id}-{self.id}-{self.epoch}" if held else None

    @property
    def lease_expires_at(self) -> datetime | None:
        """The end of the session of the worker that has claimed it, read from the database."""
        found: datetime | None = ask("load_task_lease", self.id).expires_at
        return found

    @property
    def placement_constraints(self) -> dict[str, Any] | None:
        """What it needs of its worker, in canonical form, read from the database; None if nothing."""
        needs: str | None = ask("load_task_lease", self.id).needs
        return None if needs is None else dict(json.loads(needs))

    @property
    def last_assigned_node(self) -> str | None:
        """The name of the node whose worker has it, or had it last, read from the database."""
        name: str | None = ask("load_task_lease", self.id).node
        return name
