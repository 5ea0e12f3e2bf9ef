"""The `Clock` that code takes as an argument to wait or to measure time; tests and simulations pass their own."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Reads the time and sleeps."""

    def monotonic(self) -> float:
        """Return seconds that never go back; for deadlines and durations."""

    def wall(self) -> float:
        """Return seconds since 1970 in UTC, which may be set back; for times that people read."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class SystemClock:
    """The clock of this machine."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        import asyncio  # costs a twentieth of a second of start-up; callers that sleep have it loaded already

        await asyncio.sleep(seconds)


SYSTEM_CLOCK: Clock = SystemClock()


def utc_now(clock: Clock = SYSTEM_CLOCK) -> datetime:
    """Return the clock's wall time as an aware datetime in UTC."""
    return datetime.fromtimestamp(clock.wall(), UTC)
