"""A right to make ids lasts two minutes: whoever runs for longer asks for the next one in time."""

from __future__ import annotations

import asyncio

from aaiclick.backoff import Backoff
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.orchestration.coordinator.contract import Coordinator

EVERY_S = 20.0

ANSWER_S_MAX = 10.0
"""After so long a call is given up, and made again on another connection: the network may have swallowed it."""


async def keep_ids(coordinator: Coordinator, clock: Clock = SYSTEM_CLOCK) -> None:
    """Ask for ids again and again, until cancelled; while none can be had, say so, and go on."""
    backoff = Backoff(clock)
    while True:
        await clock.sleep(backoff.pause_s or EVERY_S)
        with backoff.told("getting the right to make ids"):  # the state may be away for a while
            async with asyncio.timeout(ANSWER_S_MAX):
                await coordinator.grant_ids()
