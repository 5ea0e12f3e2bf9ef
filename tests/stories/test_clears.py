"""Clears, retries and cancels among everything else: random graphs after every step, and two at once."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from aaiclick.orchestration.store.moves import downstream as waves
from aaiclick.orchestration.store.moves import ripples
from tests.support.naive import clear, downstream
from tests.support.orchestra import Orchestra, orchestra
from tests.support.walk import Walk, walk

LONG = "TEST_LONG" in os.environ
SEEDS = range(400 if LONG else 8)


class ClearingWalk(Walk):
    """Ways on which much is cleared."""

    def weights(self) -> dict[Callable[[], Awaitable[None]], float]:
        return super().weights() | {self.clear: 2.5, self.retry: 1, self.cancel: 3}

    async def clear(self) -> None:
        """One task, and all that waits for it."""
        task = self.dice.choice(sorted(self.model.status))
        await self.cleared(f"clear {self.nodes[task].name}", {task}, self.stage.coordinator.clear, task)

    async def retry(self) -> None:
        """What failed; of a job that failed, also what was cancelled."""
        if await self.stage.ripples():
            return
        again = {"failed", "cancelled"} if self.model.job_status() == "failed" else {"failed"}
        roots = {task for task, status in self.model.status.items() if status in again}
        await self.cleared("retry", roots, self.stage.coordinator.retry_failed, self.job.id)

    async def cleared(self, said: str, roots: set[int], ask: Callable[..., Awaitable[list[int]]], what: int) -> None:
        expected = downstream(self.model, roots)
        if self.dice.random() < 0.2:
            assert set(await ask(what, dry_run=True)) == expected
            return
        ids = await ask(what)
        self.log.append(f"{said}: {[self.nodes[task].name for task in ids]}")
        assert set(ids) == expected
        assert set(ids[: len(roots)]) == roots
        assert len(ids) == len(expected)
        self.stale += [self.held.pop(task) for task in ids if task in self.held]
        if ids:
            clear(self.model, ids)


@pytest.fixture
async def stage(migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Orchestra]:
    monkeypatch.setattr(ripples, "STEP", 3)
    async with orchestra(migrated_sql_url) as opened:
        yield opened


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_random_graph_keeps_its_word_while_it_is_cleared(
    stage: Orchestra, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(waves, "WAVES_ASKED", 1)
    await walk(ClearingWalk(stage, seed))


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
@pytest.mark.parametrize("seed", [1000 + seed for seed in range(30 if LONG else 3)])
async def test_a_random_graph_keeps_its_word_while_it_is_cleared_on_servers_too(stage: Orchestra, seed: int) -> None:
    await walk(ClearingWalk(stage, seed))
