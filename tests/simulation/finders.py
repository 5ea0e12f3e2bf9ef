"""Which seeds find planted mistakes, and in how many CPU seconds; three of each, for `FOUND_BY` of test_plants.

python -m tests.simulation.finders [NAME]...
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice

from tests.simulation.plants import MISTAKES, WEATHER, planted
from tests.simulation.simulate import simulate
from tests.simulation.world import Weather

SEEDS_MAX, ENOUGH = 90, 3


def finders(name: str) -> Iterator[tuple[int, float]]:
    """The seeds whose worlds show a mistake and nothing else, each with its seconds."""
    weather = WEATHER.get(name, Weather())
    for seed in range(SEEDS_MAX):
        began = time.process_time()
        with planted(MISTAKES[name]):
            found = simulate(seed, weather).violations
        if found and not simulate(seed, weather).violations:
            yield seed, time.process_time() - began


if __name__ == "__main__":
    for each in sys.argv[1:] or MISTAKES:
        told = ", ".join(f"{seed} ({seconds:.1f} s)" for seed, seconds in islice(finders(each), ENOUGH))
        print(f"{each}: {told}", flush=True)
