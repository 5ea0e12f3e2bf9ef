"""Worlds in which workers have no database: they ask servers over a network that loses, repeats and reorders."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

import pytest

from tests.simulation.http_plants import HTTP_MISTAKES
from tests.simulation.plants import planted
from tests.simulation.simulate import Outcome, simulate
from tests.simulation.world import Weather

LONG = "TEST_LONG" in os.environ
REMOTE, BOTH = Weather(remote=1.0), Weather(remote=0.5)
SEEDS = range(300 if LONG else 2)
SEEDS_MAX = 60
pytestmark = pytest.mark.timeout(1200 if LONG else 300)

ALWAYS_HAPPENED = (
    *("brought late", "bring_again", "cut", "claim", "complete"),
    *(f"{verb} at a server" for verb in ("ids", "register", "beat", "claim", "hints", "report", "deregister")),
)
HAPPENED = (
    *ALWAYS_HAPPENED,
    *("request: lost", "answer: lost", "claims found", "hold at a server"),
    *("crash_server", "restart_server", "hang_server", "meddle"),
    *("start", "fail", "release", "recover", "late_report"),
)
"""Deeds, faults, verbs and moves of which all seeds together must have seen some; the few of the short run see less."""


@cache
def outcome_of(seed: int, weather: Weather) -> Outcome:
    return simulate(seed, weather)


@pytest.mark.parametrize("weather", [REMOTE, BOTH], ids=["all through servers", "some through servers"])
@pytest.mark.parametrize("seed", SEEDS)
def test_worlds_with_servers_keep_their_word_and_come_to_their_end(seed: int, weather: Weather) -> None:
    outcome = outcome_of(seed, weather)
    assert not outcome.violations, outcome.explain()


def test_the_seeds_see_all_that_can_happen() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        seen += outcome_of(seed, REMOTE).counts + outcome_of(seed, BOTH).counts
    print(dict(sorted(seen.items())))
    assert not [kind for kind in (HAPPENED if LONG else ALWAYS_HAPPENED) if not seen[kind]]


def test_the_same_seed_gives_the_same_trace() -> None:
    again = simulate(1, REMOTE)
    assert again.trace == outcome_of(1, REMOTE).trace
    assert again.digest == outcome_of(1, REMOTE).digest


# ---------------------------------------------------------------- mistakes that must be found

LOSSY = Weather(remote=1.0, lossy=8.0, favours=("cut", "hang_server", "crash_server", "submit", "clear"))
_LASTING = ("crash", "cancel", "drain")
WEATHER = {
    "claims_that_are_repeated_claim_anew": LOSSY,
    "repeats_that_do_not_say_so": LOSSY,
    "repeated_reports_are_conflicts": Weather(
        remote=1.0, lossy=8.0, favours=("submit", "clear"), spares=("crash", "hang")
    ),
    "reports_without_an_answer_are_done_with": Weather(
        remote=1.0, favours=("cut", "hang_server", "crash_server", "submit", "clear")
    ),
    "any_run_is_ones_own": Weather(
        remote=1.0, lossy=0.0, favours=("meddle", "submit", "more_hosts"), spares=(*_LASTING, "hang")
    ),
    "any_worker_is_ones_own": Weather(remote=1.0, favours=("meddle", "submit")),
    "deadlines_from_the_answer": Weather(
        remote=1.0, slowness=12.0, lossy=0.0, favours=("deafen", "hang_server", "submit"), spares=_LASTING
    ),
    "nobody_looks_where_hints_are_lost": Weather(remote=1.0, favours=("submit",), spares=("crash", "cancel")),
}
"""In which some of them show sooner."""

FOUND_BY = {
    "claims_that_are_repeated_claim_anew": 1,
    "repeats_that_do_not_say_so": 1,
    "repeated_reports_are_conflicts": 1,
    "any_run_is_ones_own": 2,
    "any_worker_is_ones_own": 3,
    "reports_without_an_answer_are_done_with": 1,
    "held_claims_of_no_call": 1,
    "nobody_looks_where_hints_are_lost": 2,
}
"""Seeds that have found a mistake, which the default run tries first."""


@pytest.mark.parametrize("name", HTTP_MISTAKES)
def test_a_planted_mistake_is_found(name: str) -> None:
    weather, first = WEATHER.get(name, REMOTE), 0 if LONG else FOUND_BY.get(name, 0)
    for seed in (first, *(seed for seed in range(SEEDS_MAX) if seed != first)):
        with planted(HTTP_MISTAKES[name]):
            outcome = simulate(seed, weather)
        if outcome.violations:
            print(f"{name}: seed {seed}: {outcome.violations[0]}")
            assert "TypeError" not in outcome.violations[0], "the plant does not fit the code any more"
            without = outcome_of(seed, weather).violations if LONG else []  # the short run has no time for that
            assert not without, "it was not the mistake that was found"
            return
    pytest.fail(f"{name} was not found in {SEEDS_MAX} seeds")
