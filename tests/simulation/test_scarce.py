"""Worlds in which tasks need GPUs, processors and seats, and what finds those who grant or free them wrongly."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from aaiclick.orchestration.coordinator import claiming
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules import resources
from aaiclick.orchestration.store import claim_ends
from aaiclick.orchestration.store.resources import grants, holders
from tests.simulation.simulate import simulate
from tests.simulation.world import Weather

LONG = "TEST_LONG" in os.environ
SEEDS = range(300 if LONG else 3)
SEEDS_MAX = 60
SCARCE = Weather(placed=True, scarce=True)
pytestmark = pytest.mark.timeout(1200 if LONG else 300)


def test_worlds_with_scarce_things_keep_their_word_and_come_to_their_end() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = simulate(seed, SCARCE)
        assert not outcome.violations, outcome.explain()
        seen += outcome.counts
    happened = ("claim", "clear", "recover", "release", "bodies with resources")
    assert not [kind for kind in happened if not seen[kind]]


def test_the_same_seed_gives_the_same_trace() -> None:
    assert simulate(2, SCARCE).digest == simulate(2, SCARCE).digest


# ---------------------------------------------------------------- mistakes that must be found

_real_claim = claiming.Claiming._claim_in


async def _says_it_granted(session: object, taken: Sequence[Claim], plan: Any, call: int) -> list[Claim]:
    """Nothing is stored in the transaction of the claim."""
    return [replace(claim, grants=list(grants)) for claim, grants in zip(taken, plan, strict=False)]


async def _granted_afterwards(self: claiming.Claiming, lane: int, asked: Any, limit: int) -> list[Claim]:
    """The claim is committed first, and what it was granted in a transaction of its own."""
    taken = await _real_claim(self, lane, asked, limit)
    if not any(claim.grants for claim in taken):
        return taken
    plan = [claim.grants for claim in taken]
    return await self.database.transact(lambda session: grants.grant(session, taken, plan, asked.call))


async def _forgets(*_: object) -> None:
    """Nothing is freed."""


_real_choose = resources.choose


def _with_nothing_held(needs: Any, units: Any, held: object, most: int) -> Any:
    """Whatever is held, all seems to be free."""
    return _real_choose(needs, units, {}, most)


MISTAKES: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "grant outside of the claim's transaction": (
        (claiming, "grant", _says_it_granted),
        (claiming.Claiming, "_claim_in", _granted_afterwards),
    ),
    "release when the epoch grows": ((holders, "KEPT", frozenset()), (grants, "KEPT", frozenset())),
    "lost release": ((claim_ends, "free_ended", _forgets),),
    "nobody adds up what is held": ((grants, "choose", _with_nothing_held),),
}

FOUND_IN: dict[str, int] = {}
"""Where the default run begins to look, which has little time."""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str) -> None:
    for seed in range(0 if LONG else FOUND_IN.get(name, 0), SEEDS_MAX):
        with ExitStack() as planted:
            for mistake in MISTAKES[name]:
                planted.enter_context(mock.patch.object(*mistake))
            outcome = simulate(seed, SCARCE)
        if outcome.violations:
            print(f"{name}: seed {seed}: {outcome.violations[0]}")
            assert not simulate(seed, SCARCE).violations, "it was not the mistake that was found"
            return
    pytest.fail(f"{name} was not found in {SEEDS_MAX} seeds")
