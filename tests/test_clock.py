"""Time as an argument."""

from datetime import UTC, datetime, timedelta

from aaiclick.clock import SYSTEM_CLOCK, Clock, utc_now


class StoppedClock:
    """A clock that moves only when someone sleeps."""

    def __init__(self, wall: float) -> None:
        self.now = 0.0
        self.started = wall

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.started + self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_the_time_of_day_is_aware_and_in_utc():
    assert utc_now().utcoffset() == timedelta(0)
    assert utc_now(StoppedClock(0)) == datetime(1970, 1, 1, tzinfo=UTC)


async def test_code_that_takes_a_clock_can_be_given_another_one():
    async def sleep_twice(clock: Clock) -> float:
        started = clock.monotonic()
        await clock.sleep(1800)
        await clock.sleep(1800)
        return clock.monotonic() - started

    assert await sleep_twice(StoppedClock(0)) == 3600


async def test_the_system_clock_never_goes_back():
    before = SYSTEM_CLOCK.monotonic()
    await SYSTEM_CLOCK.sleep(0)
    assert SYSTEM_CLOCK.monotonic() >= before
