"""Time as an argument: code that waits or measures takes a `Clock`, so that tests and simulations bring their own."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the time is, and how to let it pass."""

    def monotonic(self) -> float:
        """Seconds that never go back; for deadlines and durations."""

    def wall(self) -> float:
        """Seconds since 1970 in UTC, which may be set back; for what people read."""

    async def sleep(self, seconds: float) -> None:
        """Come back after so many seconds."""


class SystemClock:
    """The clocks of this machine."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        """Let the event loop run for so many seconds."""
        import asyncio  # a twentieth of a second of start-up: whoever sleeps has it loaded already

        await asyncio.sleep(seconds)


SYSTEM_CLOCK: Clock = SystemClock()


def utc_now(clock: Clock = SYSTEM_CLOCK) -> datetime:
    """The time of day, aware and in UTC."""
    return datetime.fromtimestamp(clock.wall(), UTC)
