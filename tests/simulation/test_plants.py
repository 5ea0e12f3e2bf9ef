"""A simulator that finds nothing proves nothing: each mistake that is planted into the real code must be found."""

from __future__ import annotations

import os
from functools import cache

import pytest

from tests.simulation.plants import HARMLESS, MISTAKES, WEATHER, planted
from tests.simulation.simulate import simulate
from tests.simulation.world import Weather

SEEDS_MAX = 150
"""Within how many seeds; most are found by one in two to four, some by one in forty."""

FOUND_BY: dict[str, tuple[int, ...]] = {
    "no_fence": (5, 0, 3),
    "no_new_epoch_at_claim": (0, 2, 3),
    "no_new_epoch_at_retry": (2, 3, 0),
    "fence_by_status_only": (13, 1, 10),
    "repeats_taken_for_conflicts": (0, 5, 3),
    "clock_of_the_worker": (2, 0, 1),
    "late_reports_told_each_time": (16, 21, 10),
    "outage_taken_for_a_crash": (3, 5, 8),
    "session_that_comes_back": (20, 13, 19),
    "beat_that_asks_for_nothing": (3, 4, 1),
    "beat_that_takes_what_is_on_its_way": (0, 3, 4),
    "claims_of_the_dead": (8, 5, 17),
    "bodies_that_outlast_the_session": (2, 3, 0),
    "worker_that_never_lets_go": (14, 2, 6),
    "claim_left_behind": (2, 3, 0),
    "shallow_clear": (8, 9, 10),
    "lost_decrement": (5, 4, 3),
    "children_before_the_completion": (4, 11, 16),
    "scan_and_write_apart": (71, 17, 19),
    "consumers_that_do_not_wait_for_what_is_returned": (14, 11, 24),
    "clear_that_keeps_the_children": (66, 26, 30),
    "unpin_at_start": (24, 25, 29),
    "references_that_end_with_the_claim": (58, 13, 60),
    "dropper_that_does_not_look": (31, 15, 52),
    "publication_without_pins": (15, 11, 13),
    "claims_that_end_without_a_word": (140, 91),
    "clear_that_pins_nothing": (108, 24),
    "clear_that_does_not_ask": (36, 15, 8),
}
"""Seeds that have found a mistake: they are tried first where time is short, then all others as without them.

Whatever changes the order of things in the simulator may change these. A mistake that none of its seeds finds takes
many times as long: `python -m tests.simulation.finders NAME...` looks for others.
"""

LONG = "TEST_LONG" in os.environ
HARMLESS_SEEDS = range(200 if LONG else 2)
pytestmark = pytest.mark.timeout(1200 if LONG else 300)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str) -> None:
    weather = WEATHER.get(name, Weather())
    for seed in in_turn(name):
        with planted(MISTAKES[name]):
            outcome = simulate(seed, weather)
        if outcome.violations:
            print(f"{name}: seed {seed}: {outcome.violations[0]}")
            assert "TypeError" not in outcome.violations[0], "the plant does not fit the code any more"
            assert not violations_without_it(seed, weather), "it was not the mistake that was found"
            return
    pytest.fail(f"{name} was not found in {SEEDS_MAX} seeds")


@cache
def violations_without_it(seed: int, weather: Weather) -> list[str]:
    """Those of the code as it is: the same for all mistakes that the same world shows."""
    return simulate(seed, weather).violations


def in_turn(name: str) -> list[int]:
    """The seeds to try; in the long run nothing is known beforehand."""
    first = () if LONG else FOUND_BY.get(name, ())
    return [*first, *(seed for seed in range(SEEDS_MAX) if seed not in first)]


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_mistake_is_none(name: str) -> None:
    for seed in HARMLESS_SEEDS:
        with planted(HARMLESS[name]):
            outcome = simulate(seed)
        assert not outcome.violations, outcome.explain()
