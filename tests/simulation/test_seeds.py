"""Worlds full of faults, each checked after every commit, and each coming to its end once the faults stop."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

import pytest

from tests.simulation.simulate import Outcome, simulate

LONG = "TEST_LONG" in os.environ
SEEDS = range(1000) if LONG else (*range(8), 13, 16, 40)
"""In the short run, as many as see all that can happen, and a few more."""

HAPPENED = (
    "crash before",
    "crash after",
    "lost before",
    "lost after",
    "beats cut",
    "repeated",
    "late reports refused",
    "bodies stopped",
    "grow",
    "hold",
    "tables made",
    "tables dropped",
    "crash at the engine",
    "lost at the engine",
    "remove",
    *("submit", "extend", "clear", "cancel", "retry", "drain", "keep", "crash", "hang", "outage", "more_hosts"),
    *("deafen", "report_again", "claim_again", "beat_again"),
    *("claim", "start", "complete", "fail", "release", "recover", "give_up", "doom", "reactivate", "late_report"),
)
"""Deeds, faults and moves of which all seeds together must have seen some."""


@cache
def outcome_of(seed: int) -> Outcome:
    return simulate(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_world_of_faults_keeps_its_word_and_comes_to_its_end(seed: int) -> None:
    outcome = outcome_of(seed)
    assert not outcome.violations, outcome.explain()


def test_the_seeds_see_all_that_can_happen() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        seen += outcome_of(seed).counts
    print(dict(sorted(seen.items())))
    assert not [kind for kind in HAPPENED if not seen[kind]]


@pytest.mark.parametrize("seed", [3, 4])
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    again = simulate(seed)
    assert again.trace == outcome_of(seed).trace
    assert again.digest == outcome_of(seed).digest
    assert again.digest != outcome_of(seed + 2).digest
