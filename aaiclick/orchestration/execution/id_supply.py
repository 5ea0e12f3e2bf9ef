"""Keeps the right of a process to make ids. A grant lasts up to two minutes, so it is renewed in time."""

from __future__ import annotations

import asyncio

from aaiclick.backoff import Backoff
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.orchestration.coordinator.contract import Coordinator

EVERY_S = 20.0

ANSWER_S_MAX = 10.0
"""The timeout of a call, after which it is made again on another connection: the network may have dropped it."""


async def keep_ids(coordinator: Coordinator, clock: Clock = SYSTEM_CLOCK) -> None:
    """Renew the grant of ids periodically, until cancelled. Failures are logged and tried again."""
    backoff = Backoff(clock)
    while True:
        await clock.sleep(backoff.pause_s or EVERY_S)
        with backoff.told("getting the right to make ids"):  # the database may be unavailable for a while
            async with asyncio.timeout(ANSWER_S_MAX):
                await coordinator.grant_ids()
