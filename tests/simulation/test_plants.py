"""A simulator that finds nothing proves nothing: each mistake that is planted into the real code must be found."""

from __future__ import annotations

import os

import pytest

from tests.simulation.plants import HARMLESS, MISTAKES, WEATHER, planted
from tests.simulation.simulate import simulate
from tests.simulation.world import Weather

SEEDS_MAX = 30
"""Within how many seeds; each is found by one in two to four."""

LONG = "TEST_LONG" in os.environ
HARMLESS_SEEDS = range(200 if LONG else 5)
pytestmark = pytest.mark.timeout(1200 if LONG else 120)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str) -> None:
    weather = WEATHER.get(name, Weather())
    for seed in range(SEEDS_MAX):
        with planted(MISTAKES[name]):
            outcome = simulate(seed, weather)
        if outcome.violations:
            print(f"{name}: seed {seed}: {outcome.violations[0]}")
            assert not simulate(seed, weather).violations, "it was not the mistake that was found"
            return
    pytest.fail(f"{name} was not found in {SEEDS_MAX} seeds")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_mistake_is_none(name: str) -> None:
    for seed in HARMLESS_SEEDS:
        with planted(HARMLESS[name]):
            outcome = simulate(seed)
        assert not outcome.violations, outcome.explain()
