"""Schedules in worlds of faults, with several who lead: each time has one run, and no time is left out."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any
from unittest import mock

import pytest

from aaiclick.orchestration.rules.schedules.fires import Due, due_fires
from aaiclick.orchestration.store.schedules import firing as store
from tests.simulation.simulate import Outcome, simulate
from tests.simulation.world import Weather

LONG = "TEST_LONG" in os.environ
SEEDS = range(300 if LONG else 4)
pytestmark = pytest.mark.timeout(1200 if LONG else 300)
SEEDS_MAX = 60
FOUND_BY = {"nothing is known": 1, "the last is lost": 9}
"""A seed that has found a mistake is tried first; see test_plants."""

MINUTES = Weather(schedules=True, zealous=True, favours=("switch", "set_back", "crash", "more_hosts"))

LEADERLESS = Weather(schedules=True, zealous=True, favours=("set_back", "crash"), spares=("more_hosts", "hang"))
"""Nobody is left who leads, until calm: then several times have come at once."""

WEATHER = {"the last is lost": LEADERLESS}


@cache
def outcome_of(seed: int) -> Outcome:
    return simulate(seed, MINUTES)


def test_each_time_runs_once_in_worlds_of_faults() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = outcome_of(seed)
        assert not outcome.violations, outcome.explain()
        seen += outcome.counts
    happened = ("register_entries", "switch", "set_back", "crash before", "lost after")
    assert not [kind for kind in happened if not seen[kind]]


def test_the_same_seed_gives_the_same_trace() -> None:
    assert simulate(3, MINUTES).digest == outcome_of(3).digest


# ---------------------------------------------------------------- mistakes that must be found


async def nothing_is_known(*_: Any) -> dict[datetime, Any]:
    """Nobody looks whether a time ran before."""
    return {}


async def nothing_is_noted(*_: Any, **__: Any) -> None:
    """Nobody writes down that a time ran."""


def last_is_lost(*facts: Any) -> Due:
    """Of several times that have come at once, the last is forgotten."""
    due = due_fires(*facts)
    return replace(due, fires=due.fires[:-1]) if len(due.fires) > 1 else due


MISTAKES: dict[str, tuple[str, Any]] = {
    "nothing is known": ("known_fires", nothing_is_known),
    "nothing is noted": ("note_fire", nothing_is_noted),
    "the last is lost": ("due_fires", last_is_lost),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str) -> None:
    attribute, mistake = MISTAKES[name]
    weather = WEATHER.get(name, MINUTES)
    first = 0 if LONG else FOUND_BY.get(name, 0)
    for seed in (first, *(seed for seed in range(SEEDS_MAX) if seed != first)):
        with mock.patch.object(store, attribute, mistake):
            if simulate(seed, weather).violations:
                print(f"{name}: seed {seed}")
                return
    pytest.fail(f"{name} was not found in {SEEDS_MAX} seeds")
