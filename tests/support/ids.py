"""Clocks and id makers for tests: time moves when the test says so."""

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from aaiclick.id_grants import ALLOTTED_MACHINE_IDS, LocalSlots
from aaiclick.ids import IdMaker

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
HOUR_S = 3600


class HandClock:
    """A clock that is set by hand."""

    def __init__(self, wall: datetime = NOON) -> None:
        self.wall_s = wall.timestamp()
        self.monotonic_s = 0.0

    def monotonic(self) -> float:
        return self.monotonic_s

    def wall(self) -> float:
        return self.wall_s

    async def sleep(self, seconds: float) -> None:
        self.pass_by(seconds)

    def pass_by(self, seconds: float) -> None:
        self.monotonic_s += seconds
        self.wall_s += seconds


def slots_maker(directory: Path, clock: HandClock, slots: range = ALLOTTED_MACHINE_IDS) -> IdMaker:
    """A maker that holds one of the slots in that directory."""
    return IdMaker(LocalSlots(directory, slots), clock=clock, pause=clock.pass_by)


def machine_of(made: int) -> int:
    """The machine id inside an id."""
    return made >> 12 & 1023


def assert_rising(made: list[int]) -> None:
    """Each is higher than the one before."""
    assert all(earlier < later for earlier, later in pairwise(made))
