"""A simulated process: the real worker, its real heart and the real control loop, over scripted bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aaiclick.config import settings
from aaiclick.ids import new_id
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.reconcilers import RECONCILERS
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.execution.heartbeat import Heartbeat
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.models import Orders
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.naming.hints import ORDERS, READY
from tests.simulation.bodies import Broken, ScriptedExecutor
from tests.simulation.faulty import REPEATED, FaultyCoordinator
from tests.simulation.loop import Gate
from tests.simulation.places import node_of
from tests.simulation.state import SimulatedDatabase
from tests.simulation.world import BEGINNING, World

if TYPE_CHECKING:
    from tests.simulation.servers import Server

OF_HOST: ContextVar[Host | Server | None] = ContextVar("OF_HOST", default=None)
"""Whose coroutine this is."""

OFTEN = {"sweep_tables": 15.0, "record_reconcilers": 10.0}
RECONCILERS_HERE = tuple(replace(each, every_s=OFTEN.get(each.name, each.every_s)) for each in RECONCILERS)
"""Some come more often than in life: a world does not last for long."""


class SkewedClock:
    """A machine's own clock: right about how long things take, wrong about when."""

    def __init__(self, world: World) -> None:
        self.loop = world.loop
        self.monotonic_off_s = world.dice.uniform(0, 1e6)
        self.wall_off_s = world.dice.choice([0.0, -3600.0, 3600.0, -40.0, 40.0])

    def monotonic(self) -> float:
        return self.loop.time() + self.monotonic_off_s

    def wall(self) -> float:
        return BEGINNING.timestamp() + self.loop.time() + self.wall_off_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Host:
    """One process, with two threads: one works, the other beats and controls. Either may hang, both may die."""

    can_die = True
    distance = 1.0
    is_remote = False
    hold_s = 0.0
    repeated = REPEATED

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name, self.number = f"host-{number}", number
        self.is_dead = False
        self.is_zealous = world.zealous and (bool(world.weather.zealous) or world.dice.random() < 0.6)
        self.clock = SkewedClock(world)
        self.work, self.service = Gate(f"{self.name} work"), Gate(f"{self.name} service")
        for gate in (self.work, self.service):
            gate.on_failure = self._failed
        self.database = SimulatedDatabase(world, self)
        self.coordinator = self.beating = FaultyCoordinator(world, self._direct(), repeated=self.repeated)
        """By which it works, and by which it beats."""
        self.worker = self._new_worker()
        self._session = asyncio.Event()
        self._heart: Heartbeat | None = None
        self.threads: list[asyncio.Task[None]] = []

    def _direct(self) -> Coordinator:
        return DirectCoordinator(self.database, draw=self.world.dice.random, clock=self.clock)

    def _new_worker(self) -> TaskWorker:
        dice = self.world.dice
        worker = TaskWorker(
            self.coordinator,  # type: ignore[arg-type]
            ScriptedExecutor(self.world, self),
            concurrency=dice.choice([1, 2, 4]),
            lanes=self._lanes(),
            node=self._node(),
            grace_s=dice.choice([0.0, 5.0, 30.0]),
            max_tasks=_tasks_max(self.world, dice.choice([None, None, None, 10])),
            clock=self.clock,
            hold_s=self.hold_s,
        )
        worker.on_session = self._attend
        return worker

    def _node(self) -> NodeDescription | None:
        return node_of(self.number, is_calm=self.world.is_calm) if self.world.weather.placed else None

    def _lanes(self) -> Sequence[int] | None:
        """Every third host serves all lanes; of the others, each serves some, in an order of its own."""
        if self.world.weather.placed:
            return None
        lanes, number = self.world.lanes, self.number
        return lanes if self.world.is_calm or number % 3 == 0 else lanes[:-1] if number % 3 == 1 else lanes[::-1][:2]

    @property
    def worker_id(self) -> int | None:
        return self.worker.id or None

    # ------------------------------------------------------------ its life

    def start(self) -> None:
        self.world.hosts.append(self)
        self.world.note(self.name, f"starts{', a zealot' if self.is_zealous else ''}")
        self.threads = [self.work.begin(self._work), self.service.begin(self._serve)]

    async def _work(self) -> None:
        OF_HOST.set(self)
        await self._run()
        self.world.note(self.name, "leaves")
        self._gone()
        for task in self.service.tasks:
            task.cancel()

    async def _run(self) -> None:
        await self.worker.run()

    def _beside(self) -> Coroutine[Any, Any, None]:
        """What the second thread does besides beating."""
        session_s = settings().session_s
        control = Control(self.database, new_id(), session_s=session_s, clock=self.clock, reconcilers=RECONCILERS_HERE)
        if self.is_zealous:
            control.leader.try_to_lead = _always  # type: ignore[method-assign]
        return control.run()

    async def _serve(self) -> None:
        OF_HOST.set(self)
        beside = asyncio.create_task(self._beside())
        try:
            while True:
                await self._session.wait()
                self._session.clear()
                await self._new_heart(self.worker.id).beat_forever()
        finally:
            beside.cancel()

    def _new_heart(self, session: int) -> Heartbeat:
        def bring(orders: Orders) -> None:
            self.world.loop.call_soon(lambda: self.worker.obey(orders) if self.worker.id == session else None)

        every_s = settings().beat_every_s
        self._heart = Heartbeat(
            self.beating,  # type: ignore[arg-type]
            session,
            self.worker.holdings,
            bring,
            every_s=every_s,
            clock=self.clock,
            on_renewed=self.worker.cutoff.renewed,
        )
        return self._heart

    async def _attend(self, worker: TaskWorker) -> None:
        self._session.set()

    def ask(self) -> None:
        """Beat now."""
        if self._heart is not None:
            self._heart.ask()

    def hear(self, hint: str) -> None:
        if hint == READY:
            self.worker.wake()
        elif hint == ORDERS:
            self.ask()

    # ------------------------------------------------------------ what may happen to it

    def die(self) -> None:
        self.is_dead = True
        self.work.shut()
        self.service.shut()
        self._gone()

    def pause(self, gates: Sequence[Gate], seconds: float) -> None:
        names = " and ".join(gate.name for gate in gates)
        self.world.note(self.name, f"{names} hangs for {seconds:.1f} s")
        for gate in gates:
            gate.shut()
            self.world.loop.call_later(seconds, self.go_on, gate)

    def go_on(self, gate: Gate) -> None:
        if not self.is_dead and gate.is_shut:
            self.world.note(self.name, f"{gate.name} goes on")
            gate.open()

    def _gone(self) -> None:
        if self in self.world.hosts:
            self.world.hosts.remove(self)

    def _failed(self, error: BaseException) -> None:
        if not self.world.is_over and not isinstance(error, Broken):
            self.world.fail(f"a coroutine of {self.name} failed: {type(error).__name__}: {error}")


async def _always() -> bool:
    """Leads whatever the term says."""
    return True


def _tasks_max(world: World, drawn: int | None) -> int | None:
    """Return after how many tasks a worker leaves; never, if it came with the calm as the one that has it all."""
    return None if world.is_calm and world.weather.placed else drawn
