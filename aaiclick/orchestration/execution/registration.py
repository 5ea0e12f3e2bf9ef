"""How a worker gets a session and keeps it; each answer moves the time by which it must be heard of again."""

from __future__ import annotations

import os
import socket

from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.cutoff import Cutoff


async def register(coordinator: Coordinator, cutoff: Cutoff, name: str | None, concurrency: int) -> int:
    """Begin a session; gives its id."""
    sent = cutoff.clock.monotonic()
    registered = await coordinator.register(
        hostname=socket.gethostname(), pid=os.getpid(), name=name, concurrency=concurrency
    )
    cutoff.renewed(sent)
    return registered.id


async def renew(coordinator: Coordinator, cutoff: Cutoff, worker_id: int) -> bool:
    """A beat beside those of the heart; says whether the session lives."""
    sent = cutoff.clock.monotonic()
    orders = await coordinator.beat(worker_id)
    if orders.alive:
        cutoff.renewed(sent)
    return orders.alive
