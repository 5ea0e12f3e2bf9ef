"""Worlds in which tasks say where they may run, on nodes that have this or that and are closed now and then."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any
from unittest import mock

import pytest

from aaiclick.orchestration.coordinator import claiming, lane_choice
from aaiclick.orchestration.store.dialects import sqlite_moves
from aaiclick.orchestration.store.nodes import registration
from tests.simulation.simulate import simulate
from tests.simulation.world import Weather

LONG = "TEST_LONG" in os.environ
SEEDS = range(300) if LONG else (0, 1, 2, 3, 6)
SEEDS_MAX = 60
PLACED = Weather(placed=True)
pytestmark = pytest.mark.timeout(1200 if LONG else 300)


def test_worlds_with_nodes_keep_their_word_and_come_to_their_end() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = simulate(seed, PLACED)
        assert not outcome.violations, outcome.explain()
        seen += outcome.counts
    happened = ("claim", "clear", "recover", "release", "close_or_open", "empty", "remove")
    assert not [kind for kind in happened if not seen[kind]]


def test_the_same_seed_gives_the_same_trace() -> None:
    assert simulate(3, PLACED).digest == simulate(3, PLACED).digest


# ---------------------------------------------------------------- mistakes that must be found


async def _nothing_runs(*_: object) -> int:
    """Nobody counts what runs on the node already."""
    return 0


MISTAKES: dict[str, tuple[Any, str, Any]] = {
    "whatever a task needs, any node will do": (lane_choice, "misses", lambda *_: []),
    "nobody counts what runs on a node": (claiming, "count_on_node", _nothing_runs),
    "a closed node claims like any other": (
        sqlite_moves,
        "_SESSION",
        sqlite_moves._SESSION.replace("cordoned", "0"),
    ),
    "a worker that begins on a closed node is given tasks": (registration.Registered, "is_open", True),
}


FOUND_IN = {"a closed node claims like any other": 5, "a worker that begins on a closed node is given tasks": 13}
"""Where the default run begins to look, which has little time."""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str) -> None:
    for seed in range(0 if LONG else FOUND_IN.get(name, 0), SEEDS_MAX):
        with mock.patch.object(*MISTAKES[name]):
            outcome = simulate(seed, PLACED)
        if outcome.violations:
            print(f"{name}: seed {seed}: {outcome.violations[0]}")
            assert not simulate(seed, PLACED).violations, "it was not the mistake that was found"
            return
    pytest.fail(f"{name} was not found in {SEEDS_MAX} seeds")
