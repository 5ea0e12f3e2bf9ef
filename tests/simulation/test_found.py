"""What the simulator has found, each in the smallest story that shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

import pytest

from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.reconcilers import RECONCILERS, Reconciler, Tools, questions_of
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.pending_work import look_for_work
from aaiclick.orchestration.store.session import Session
from tests.simulation.loop import Gate, VirtualLoop
from tests.simulation.state import Dialect, State
from tests.simulation.world import BEGINNING

T = TypeVar("T")

SESSION_S = 30.0
"""What is set unless something else is."""


class LoopClock:
    """The loop's own time."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.monotonic = loop.time
        self.wall = loop.time

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SlowDatabase(Database):
    """Takes a while to answer, and says whether it is about to."""

    is_asked = False

    async def read(self, work: Callable[[Session], Awaitable[T]], *, stale_ok: bool = False) -> T:
        self.is_asked = True
        await asyncio.sleep(0.5)
        self.is_asked = False
        return await super().read(work, stale_ok=stale_ok)


@pytest.mark.parametrize("in_a_round", [False, True], ids=["between rounds", "in the middle of a round"])
def test_a_leader_that_was_paused_through_an_outage_does_not_reap_at_once(in_a_round: bool) -> None:
    """The pause was noticed too late, at the end of the next round, or not at all if it fell into a round: sessions
    of workers that live, and could not say so in an outage, were ended."""
    loop, state, gate = VirtualLoop(), State(), Gate("leader")
    dialect = Dialect(time=lambda: BEGINNING + timedelta(seconds=loop.time()))
    database = SlowDatabase("sqlite:///simulated", state.engine, dialect)

    def statuses() -> list[str]:
        return [status for (status,) in state.rows("SELECT status FROM workers")]

    async def story() -> None:
        control = Control(database, 1, session_s=SESSION_S, clock=LoopClock(loop))
        leading = gate.begin(control.run)
        await asyncio.sleep(2 * SESSION_S)
        await DirectCoordinator(database).register(hostname="h", pid=1)
        while database.is_asked != in_a_round:  # noqa: ASYNC110 (time is virtual)
            await asyncio.sleep(0.1)
        gate.shut()
        await asyncio.sleep(1.5 * SESSION_S)
        gate.open()
        await asyncio.sleep(0.9 * SESSION_S)
        assert statuses() == ["active"]
        await asyncio.sleep(SESSION_S)
        assert statuses() == ["stopped"]
        leading.cancel()
        await asyncio.wait([leading])
        await database.close()

    loop.run_until_complete(story())
    loop.close()
    state.close()


def test_a_leader_whose_rounds_are_slow_ends_dead_sessions_all_the_same() -> None:
    """The database was taken for cut off between two answers that were looked at, at the beginning and the end of a
    round, although it answered all the time."""
    loop, state = VirtualLoop(), State()
    dialect = Dialect(time=lambda: BEGINNING + timedelta(seconds=loop.time()))
    database = SlowDatabase("sqlite:///simulated", state.engine, dialect)

    async def look_often(tools: Tools) -> int:
        for _ in range(40):
            await database.read(partial(look_for_work, questions=questions_of(RECONCILERS)))
        return 0

    async def story() -> None:
        slow = (*RECONCILERS, Reconciler("look_often", look_often, "takes its time in each round"))
        control = Control(database, 1, session_s=SESSION_S, clock=LoopClock(loop), reconcilers=slow)
        await DirectCoordinator(database).register(hostname="h", pid=1)
        leading = asyncio.create_task(control.run())
        await asyncio.sleep(20 * SESSION_S)
        assert state.rows("SELECT status FROM workers") == [("stopped",)]
        leading.cancel()
        await asyncio.wait([leading])
        await database.close()

    loop.run_until_complete(story())
    loop.close()
    state.close()
