"""Beginning and renewing a worker's session. Each answer moves the cut-off."""

from __future__ import annotations

import os
import socket
from functools import partial

from aaiclick.backoff import insist
from aaiclick.clock import Clock
from aaiclick.errors import NotAuthenticated, ProtocolRefused
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.models.node_info import NodeDescription

SHUT_OUT = (NotAuthenticated, ProtocolRefused)
"""Answers of a server that end the worker: to ask again would not help."""


async def register(
    coordinator: Coordinator, cutoff: Cutoff, name: str | None, concurrency: int, node: NodeDescription | None
) -> int:
    """Begin a session and return its id."""
    sent = cutoff.clock.monotonic()
    registered = await coordinator.register(
        hostname=socket.gethostname(), pid=os.getpid(), name=name, concurrency=concurrency, node=node
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


async def begin_session(
    coordinator: Coordinator,
    cutoff: Cutoff,
    name: str | None,
    concurrency: int,
    node: NodeDescription | None,
    session: int,
    clock: Clock,
) -> int:
    """Return the id of a live session: this one, if it can be renewed (0: there is none), else a new one.

    Failed calls are made again. Raises those of SHUT_OUT.
    """
    if session:
        renewing = partial(renew, coordinator, cutoff, session)
        if await insist("renewing the session", renewing, clock, but=SHUT_OUT):
            return session
    registering = partial(register, coordinator, cutoff, name, concurrency, node)
    return await insist("registering", registering, clock, but=SHUT_OUT)
