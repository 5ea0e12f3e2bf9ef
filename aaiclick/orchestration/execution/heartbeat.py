"""The heartbeat of a worker: it renews the session, lists the runs that are held, and receives orders.

It must run on an event loop without bodies: a body that computes for a minute must not make its worker look dead
(pitfall T23).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from aaiclick.backoff import Backoff
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.holdings import Holdings
from aaiclick.orchestration.models import Orders

WATCH_S = 2.0
"""The maximum pause while runs are held, so that an order whose hint was lost does not wait long."""

BEAT_S_MIN, BEAT_S_MAX = 1.0, 10.0
"""Bounds of a beat's timeout, after which it is sent again on another connection, since the network may have dropped
it. Short sessions use a shorter timeout, so that there is time for another beat."""

RETRY_S = 1.0
"""The time from sending a beat that failed to sending the next. If the beat took longer, the next is sent at once."""


class Heartbeat:
    """Sends the heartbeats of one session."""

    def __init__(
        self,
        coordinator: Coordinator,
        worker_id: int,
        holdings: Holdings,
        on_orders: Callable[[Orders], None],
        *,
        every_s: float,
        clock: Clock = SYSTEM_CLOCK,
        on_renewed: Callable[[float], None] = lambda sent: None,
    ) -> None:
        self.coordinator = coordinator
        self.worker_id = worker_id
        self.holdings = holdings
        self.on_orders = on_orders
        self.every_s = every_s
        self.clock = clock
        self.on_renewed = on_renewed
        """Called with the time at which the beat was sent, as soon as the session is renewed. The comparison of runs
        may still be going on."""
        self._asked = asyncio.Event()
        self._sent = float("-inf")
        self._backoff = Backoff(clock)

    def ask(self) -> None:
        """Send a beat now: there may be orders."""
        self._asked.set()

    async def beat_forever(self) -> None:
        """Send beats until the session is over, or this is cancelled."""
        while True:
            await self._rest()
            orders = await self.beat()
            if orders is not None and not orders.alive:
                return

    def pause_s(self) -> float:
        """Return the pause between two beats, in seconds."""
        return min(self.every_s / 2, WATCH_S) if len(self.holdings) else self.every_s

    async def beat(self) -> Orders | None:
        """Send one beat and return its orders; None if it failed.

        The counts of ended runs are taken out of the holdings first, and put back if the session was not renewed.
        """
        picture = self.holdings.picture(self.clock.monotonic())
        completed, failed = self.holdings.take_counts()
        sent = self._sent = self.clock.monotonic()
        counted = False

        def renewed() -> None:
            nonlocal counted
            counted = True
            self.on_renewed(sent)

        try:
            async with asyncio.timeout(min(BEAT_S_MAX, max(self.every_s, BEAT_S_MIN))):
                orders = await self.coordinator.beat(
                    self.worker_id,
                    known_call=picture.known_call,
                    held=picture.held,
                    completed=completed,
                    failed=failed,
                    unreported_s=int(picture.unreported_s),
                    renewed=renewed,
                )
        except Exception as error:
            if not counted:
                self.holdings.count(completed, failed)
            self._backoff.met(f"worker {self.worker_id}: its heartbeat", error)
            return None
        self._backoff.over()
        if orders.alive:
            self.holdings.told(picture, self.clock.monotonic())
        self.on_orders(orders)
        return orders

    async def _rest(self) -> None:
        """Wait until the next beat is due; less long if `ask` is called, or if a task is claimed meanwhile."""
        again = self._backoff.going_on
        since = self._sent if again else self.clock.monotonic()
        while True:
            pause_s = min(RETRY_S, self.every_s) if again else self.pause_s()
            left_s = since + pause_s - self.clock.monotonic()
            if left_s <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, WATCH_S)):
                    await self._asked.wait()
                self._asked.clear()
                return
