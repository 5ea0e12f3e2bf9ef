"""Running one seed."""

from __future__ import annotations

import asyncio
import itertools
import logging
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from aaiclick import ids
from aaiclick.config import Settings, reset_settings
from aaiclick.id_grants import RANDOM_MACHINE_IDS, Grant
from aaiclick.orchestration.control import schedules as control_schedules
from aaiclick.orchestration.control import table_dropper as control_tables
from aaiclick.orchestration.control import table_sweeper
from aaiclick.orchestration.coordinator.http import calls
from aaiclick.orchestration.models import node
from aaiclick.orchestration.store.leases import machine_ids
from aaiclick.orchestration.store.moves import ripples
from aaiclick.server.node import database_room
from tests.simulation.engine import Client
from tests.simulation.fate import Fate
from tests.simulation.host import OF_HOST
from tests.simulation.loop import VirtualLoop
from tests.simulation.world import Weather, World

SHOWN = 40
"""The last lines of a trace that a failure shows."""


@dataclass
class Outcome:
    """What became of a seed."""

    seed: int
    violations: list[str]
    trace: list[str]
    digest: str
    counts: Counter[str]
    seconds: float
    """Of virtual time."""

    def explain(self) -> str:
        """What went wrong, and how to see all of it."""
        return "\n".join(
            [
                f"seed {self.seed}: {self.violations[0] if self.violations else 'all is well'}",
                *self.trace[-SHOWN:],
                *self.violations[1:5],
                f"the whole trace: python -m tests.simulation {self.seed}",
            ]
        )


class _Counting:
    """Ids in a row."""

    def __init__(self) -> None:
        self._next = itertools.count(101)

    def one(self) -> int:
        return next(self._next)

    def many(self, count: int) -> list[int]:
        return [next(self._next) for _ in range(count)]


class _Ids:
    """Hosts without a database make ids as they were granted; all others are of one counter."""

    def __init__(self) -> None:
        self._counting = _Counting()

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(OF_HOST.get(), "ids", self._counting), name)


async def _no_ids(database: object) -> None:
    """Ids are made by a counter."""


SETTINGS = {"session_s": 12.0, "beat_every_s": 4.0, "losses_max": 6, "job_timeout_s": None, "retries_max": 0}
"""Short sessions: more of them end in the same time."""


@contextmanager
def _controlled() -> Iterator[None]:
    """Take what could differ from one time to the next out of chance's hands."""
    chosen = replace(Settings.from_env({"AAICLICK_LOCAL_ROOT": "/nowhere"}), **SETTINGS)  # type: ignore[arg-type]
    log = logging.getLogger("aaiclick")
    level = log.level
    log.setLevel(logging.CRITICAL)
    reset_settings()
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(Settings, "from_env", return_value=chosen))
        patches.enter_context(mock.patch.object(ids, "_maker", _Ids()))
        patches.enter_context(mock.patch.object(control_schedules, "provide_ids", _no_ids))
        patches.enter_context(mock.patch.object(ripples, "STEP", 3))
        patches.enter_context(mock.patch.object(node, "_groups_in_memory", weakref.WeakValueDictionary()))
        try:
            yield
        finally:
            log.setLevel(level)
            reset_settings()


@contextmanager
def _engine_of(world: World) -> Iterator[None]:
    """Whoever drops or sweeps tables does so in this world's engine."""

    async def opened(url: str) -> Client:
        assert world.fate is not None
        return world.engine.client_of(OF_HOST.get() or world.fate.database.party)

    async def closed(url: str) -> None:
        """There is nothing to close."""

    with ExitStack() as patches:
        for module in (control_tables, table_sweeper):
            patches.enter_context(mock.patch.object(module, "open_client", opened))
            patches.enter_context(mock.patch.object(module, "close_client", closed))
        yield


@contextmanager
def _drawn_by(world: World) -> Iterator[None]:
    """What the real code leaves to chance is left to this world's dice."""

    def random_grant(from_ms: int) -> Grant:
        return Grant(world.dice.choice(RANDOM_MACHINE_IDS), from_ms, from_ms + 10_000, world.dice.randrange(2048))

    with ExitStack() as patches:
        for module in (calls, database_room, machine_ids):
            patches.enter_context(mock.patch.object(module, "random", world.dice))
        patches.enter_context(mock.patch.object(ids, "random_grant", random_grant))
        yield


ANY_WEATHER = Weather()


def simulate(seed: int, weather: Weather = ANY_WEATHER) -> Outcome:
    """Let a world run to its end."""
    loop = VirtualLoop()
    with _controlled(), ExitStack() as patches:
        world = World(seed, loop, weather)
        patches.enter_context(_engine_of(world))
        patches.enter_context(_drawn_by(world))
        try:
            loop.run_until_complete(_live(world))
            seconds = loop.time()
            loop.run_until_complete(_end(world))
        finally:
            loop.close()
            world.state.close()
    return Outcome(seed, world.violations, world.trace, world.digest(), world.counts, seconds)


async def _live(world: World) -> None:
    fate = Fate(world)
    world.fate = fate
    living = asyncio.ensure_future(fate.run())
    await asyncio.wait([living, world.failed], return_when=asyncio.FIRST_COMPLETED)
    living.cancel()
    (error,) = await asyncio.gather(living, return_exceptions=True)
    if isinstance(error, Exception) and not world.violations:
        raise error


async def _end(world: World) -> None:
    """Let all coroutines go, those of the dead too: the world is over, and no call gets through."""
    world.is_over = True
    assert world.fate is not None
    gates = [gate for host in world.fate.everyone for gate in (host.work, host.service)]
    gates += [server.gate for server in world.network.all_servers] if world.network is not None else []
    for gate in gates:
        gate.open()
    while left := [task for gate in gates for task in gate.tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.sleep(10)
