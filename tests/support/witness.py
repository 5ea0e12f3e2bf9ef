"""What bodies themselves have written of when they were alive, outside of all that is asked here: the witness."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.support.fleet import Fleet, eventually


def lives(fleet: Fleet, name: str) -> dict[int, tuple[float, float]]:
    """For each process that ran the body of this task: when it said first and last that it was alive."""
    found = {}
    for file in Path(fleet.place).glob(f"ticks-{name}-*"):
        times = [float(line) for line in file.read_text().splitlines() if line]
        if times:
            found[int(file.name.rpartition("-")[2])] = times[0], times[-1]
    return found


def overlaps(fleet: Fleet, *names: str) -> list[str]:
    """Bodies of one task that were alive at the same time."""
    found = []
    for name in names:
        spans = sorted(lives(fleet, name).values())
        found += [f"{name}: {one} {two}" for one, two in pairwise(spans) if one[1] >= two[0]]
    return found


async def begun_elsewhere(fleet: Fleet, *names: str) -> None:
    """Each of these has begun in a second process, and said so for a while."""

    def have() -> bool:
        runs = [sorted(lives(fleet, name).values()) for name in names]
        return all(len(spans) == 2 and spans[1][1] - spans[1][0] > 0.2 for spans in runs)

    await eventually(have, fleet.explain)
