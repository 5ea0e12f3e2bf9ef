"""Beginning and renewing a worker's session. Each answer moves the cut-off."""

from __future__ import annotations

import os
import socket

from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.cutoff import Cutoff


async def register(coordinator: Coordinator, cutoff: Cutoff, name: str | None, concurrency: int) -> int:
    """Begin a session and return its id."""
    sent = cutoff.clock.monotonic()
    registered = await coordinator.register(
        hostname=socket.gethostname(), pid=os.getpid(), name=name, concurrency=concurrency
    )
    cutoff.renewed(sent)
    return registered.id


async def renew(coordinator: Coordinator, cutoff: Cutoff, worker_id: int) -> bool:
    """Renew the session outside the regular heartbeat. Return whether it is alive."""
    sent = cutoff.clock.monotonic()
    orders = await coordinator.beat(worker_id)
    if orders.alive:
        cutoff.renewed(sent)
    return orders.alive
