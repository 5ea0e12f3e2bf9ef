"""Worlds in which tasks stand in several lanes, and most hosts serve some of them."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any
from unittest import mock

import pytest
from sqlalchemy import Insert, insert, literal, select

from aaiclick.orchestration.store.dialects import portable, sqlite_moves
from aaiclick.orchestration.store.dialects.contract import Dialect, QueueStretch
from aaiclick.orchestration.store.moves import queue
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import ready, tasks
from tests.simulation.simulate import simulate
from tests.simulation.world import Weather

LONG = "TEST_LONG" in os.environ
SEEDS = range(300 if LONG else 6)
SEEDS_MAX = 60
LANES = Weather(lanes=True)
pytestmark = pytest.mark.timeout(1200 if LONG else 300)


def test_worlds_with_lanes_keep_their_word_and_come_to_their_end() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = simulate(seed, LANES)
        assert not outcome.violations, outcome.explain()
        seen += outcome.counts
    happened = ("claimed in lane 0", "claimed in lane 1", "claimed in lane 2", "clear", "fail", "recover", "release")
    assert not [kind for kind in happened if not seen[kind]]


def test_the_same_seed_gives_the_same_trace() -> None:
    assert simulate(3, LANES).digest == simulate(3, LANES).digest


# ---------------------------------------------------------------- mistakes that must be found


def _enter_the_plain_lane(dialect: Dialect) -> Insert:
    """Whatever becomes ready again does so for anybody."""
    chosen = select(tasks.c.reserved_for, literal(0), -tasks.c.priority, tasks.c.job_id, tasks.c.id).where(
        dialect.in_ids(tasks.c.id),
        tasks.c.status == "pending",
        tasks.c.unmet_count == 0,
        tasks.c.run_after.is_(None),
    )
    return insert(ready).from_select(["reserved_for", "lane", "rank", "job_id", "task_id"], chosen)


async def _delete_in_the_plain_lane(session: Session, stretch: QueueStretch, ids: Any) -> None:
    """Whatever is cancelled or cleared is looked for among plain tasks."""
    await _delete_ready(session, stretch._replace(lane=0), ids)


_delete_ready = portable.delete_ready
_PLAIN_LANE = "lane = 0 * ?"

MISTAKES: dict[str, list[tuple[Any, str, Any]]] = {
    "what is tried again is for anybody": [(queue, "_enter_queue", _enter_the_plain_lane)],
    "what leaves is looked for among plain tasks": [(portable, "delete_ready", _delete_in_the_plain_lane)],
    "a claim takes plain tasks whatever is asked": [
        (sqlite_moves, name, getattr(sqlite_moves, name).replace("lane = ?", _PLAIN_LANE))
        for name in ("_PICK", "_LEAVE")
    ],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str) -> None:
    for seed in range(SEEDS_MAX):
        with mock.patch.multiple(
            MISTAKES[name][0][0], **{attribute: mistake for _, attribute, mistake in MISTAKES[name]}
        ):
            outcome = simulate(seed, LANES)
        if outcome.violations:
            print(f"{name}: seed {seed}: {outcome.violations[0]}")
            assert not simulate(seed, LANES).violations, "it was not the mistake that was found"
            return
    pytest.fail(f"{name} was not found in {SEEDS_MAX} seeds")
