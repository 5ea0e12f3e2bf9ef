"""Random graphs under random steps, checked after each against the invariants and a model that keeps no counters."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.store.moves import ripples
from tests.support.orchestra import Orchestra, orchestra
from tests.support.walk import Walk, walk

LONG = "TEST_LONG" in os.environ
SEEDS = range(400 if LONG else 8)


@pytest.fixture
async def stage(migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Orchestra]:
    monkeypatch.setattr(ripples, "STEP", 3)
    async with orchestra(migrated_sql_url) as opened:
        yield opened


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_random_graph_keeps_its_word_after_every_step(stage: Orchestra, seed: int) -> None:
    await walk(Walk(stage, seed))


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
@pytest.mark.parametrize("seed", [1000 + seed for seed in range(30 if LONG else 2)])
async def test_a_random_graph_keeps_its_word_on_servers_too(stage: Orchestra, seed: int) -> None:
    await walk(Walk(stage, seed))
