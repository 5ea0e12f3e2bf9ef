"""A body that has a loop of its own asks in the worker's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.errors import ClaimLost
from aaiclick.orchestration.execution.runs.run_services import WorkerServices
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim
from tests.support import bodies


class State:
    """A coordinator that only holds tables, after so many failures."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.loops: list[asyncio.AbstractEventLoop] = []

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        self.loops.append(asyncio.get_running_loop())
        if self.failures:
            raise self.failures.pop(0)
        return "ours"

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        self.loops.append(asyncio.get_running_loop())
        if self.failures:
            raise self.failures.pop(0)
        return CacheAnswer(hit=True)

    async def slots(self) -> int:
        self.loops.append(asyncio.get_running_loop())
        if self.failures:
            raise self.failures.pop(0)
        return 5


def services_of(state: State, noted: list[tuple[int, int]]) -> WorkerServices:
    services = WorkerServices(state, SYSTEM_CLOCK, noted.append)  # type: ignore[arg-type]
    services.open()
    return services


async def test_the_state_is_asked_in_the_workers_loop() -> None:
    state, noted = State(), list[tuple[int, int]]()
    services, claim = services_of(state, noted), bodies.claim_of(bodies.nothing)
    assert await services.hold(claim, []) == "ours"
    assert await asyncio.to_thread(lambda: asyncio.run(services.hold(claim, []))) == "ours"
    assert state.loops == [asyncio.get_running_loop()] * 2
    assert noted == [(claim.task_id, claim.epoch)] * 2


async def test_a_state_that_is_away_is_asked_again() -> None:
    state = State(OSError("away"), RuntimeError("a fault"))
    assert await services_of(state, []).hold(bodies.claim_of(bodies.nothing), []) == "ours"
    assert len(state.loops) == 3


async def test_a_run_that_is_lost_is_told_at_once_and_noted_all_the_same() -> None:
    """What it held before is to be freed."""
    noted: list[tuple[int, int]] = []
    services = services_of(State(ClaimLost(task_id=1, epoch=1, move="hold")), noted)
    with pytest.raises(ClaimLost):
        await services.hold(bodies.claim_of(bodies.nothing), [])
    assert len(noted) == 1


async def test_slots_are_asked_for_in_the_workers_loop_until_there_is_an_answer() -> None:
    state = State(OSError("away"))
    services = services_of(state, [])
    assert await asyncio.to_thread(lambda: asyncio.run(services.slots())) == 5
    assert state.loops == [asyncio.get_running_loop()] * 2


async def test_a_remembered_result_is_asked_for_in_the_workers_loop_until_there_is_an_answer() -> None:
    state, noted = State(OSError("away")), list[tuple[int, int]]()
    services, claim = services_of(state, noted), bodies.claim_of(bodies.nothing)
    key = CacheKey("d", "a.b", "i")
    assert (await asyncio.to_thread(lambda: asyncio.run(services.recall(claim, key)))).hit
    assert state.loops == [asyncio.get_running_loop()] * 2
    assert noted == [(claim.task_id, claim.epoch)], "a hit may give it tables"
