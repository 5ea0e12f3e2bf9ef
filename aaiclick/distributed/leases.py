"""Leases of tasks: the claim of a node's worker, which lives as long as the worker's session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from aaiclick.orchestration.models import Claim


@dataclass(slots=True)
class TaskLease:
    """A node's right to run a task. It ends with the report, or with the node's session."""

    task_id: str
    node_id: str
    lease_id: str
    idempotency_key: str
    attempt_id: int
    acquired_at: datetime
    expires_at: datetime
    claim: Claim = field(repr=False)
    renewing: Callable[[TaskLease, float | None], Awaitable[datetime]] = field(repr=False)

    async def renew(self, duration: float | None = None) -> None:
        """Renew the node's session, for `duration` seconds or as configured. Raise SessionOver if it has ended."""
        self.expires_at = await self.renewing(self, duration)


def lease_id(worker_id: int, task_id: int, epoch: int) -> str:
    """Return the name of a lease, which is no secret: whoever reports is fenced by worker and epoch."""
    return f"{worker_id}-{task_id}-{epoch}"
