"""A simulated process: the real worker, its real heart and the real control loop, over scripted bodies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

from aaiclick.config import settings
from aaiclick.errors import AaiclickError, ClaimLost
from aaiclick.ids import new_id
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.reconcilers import RECONCILERS
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.heartbeat import Heartbeat
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.models import Claim, Done, Failure, Group, Held, Orders, Receipt, Report, Task
from aaiclick.orchestration.models import Worker as Registered
from aaiclick.orchestration.models.cached import CacheAnswer, CacheKey
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.models.node import Edge
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.naming.hints import ORDERS, READY
from tests.simulation.engine import kwargs_with
from tests.simulation.loop import Gate
from tests.simulation.places import node_of
from tests.simulation.run_tables import RunTables
from tests.simulation.state import Away, SimulatedDatabase
from tests.simulation.world import BEGINNING, World

T = TypeVar("T")

OF_HOST: ContextVar[Host | None] = ContextVar("OF_HOST", default=None)
"""Whose coroutine this is."""

Call = tuple[int, dict[str, Any]]
"""Whose it was, and what else it said."""

GROWING = 0.15
"""How often a body makes tasks."""

TASKS_MAX = 40
"""In a job of so many, bodies make no more."""

OFTEN = {"sweep_tables": 15.0, "record_reconcilers": 10.0}
RECONCILERS_HERE = tuple(replace(each, every_s=OFTEN.get(each.name, each.every_s)) for each in RECONCILERS)
"""Some come more often than in life: a world does not last for long."""

REPEATED = 0.03
"""How often the network brings a request twice; the first answer is dropped."""


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


class FaultyCoordinator:
    """The worker's verbs, over a network that repeats itself; what is lost on it, the database below loses."""

    def __init__(self, world: World, inner: DirectCoordinator) -> None:
        self.world = world
        self.inner = inner
        self.beats: list[Call] = []
        self.claims: list[Call] = []
        self.deaf_until = 0.0
        """Until when no beat of this one gets through, though everything else does."""

    async def _send(self, call: Callable[[], Awaitable[T]]) -> T:
        if not self.world.is_calm and self.world.dice.random() < REPEATED:
            self.world.counts["repeated"] += 1
            try:
                await call()
            except (AaiclickError, Away):
                self.world.counts["repeated in vain"] += 1
        return await call()

    async def register(self, **facts: Any) -> Registered:
        return await self._send(lambda: self.inner.register(**facts | {"hostname": "simulated", "pid": 1}))

    async def beat(self, worker_id: int, **facts: Any) -> Orders:
        if self.world.loop.time() < self.deaf_until and not self.world.is_calm:
            self.world.counts["beats cut"] += 1
            raise Away("only beats are cut")
        told = {name: fact for name, fact in facts.items() if name != "renewed"}  # the network brings no answer again
        self.beats = [*self.beats[-10:], (worker_id, told)]
        return await self._send(lambda: self.inner.beat(worker_id, **facts))

    async def deregister(self, worker_id: int) -> bool:
        return await self._send(lambda: self.inner.deregister(worker_id))

    async def claim(self, worker_id: int, **facts: Any) -> list[Claim]:
        self.claims = [*self.claims[-10:], (worker_id, facts)]
        claims = await self._send(lambda: self.inner.claim(worker_id, **facts))
        self.world.claimed(claims, facts["lanes"])
        return claims

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        self.world.sent.append((worker_id, tuple(reports)))

        async def call() -> Receipt:
            receipt = await self.inner.report(worker_id, reports)
            self.world.received(worker_id, reports, receipt)
            return receipt

        return await self._send(call)

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        return await self._send(lambda: self.inner.release(worker_id, claims))

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        return await self._send(lambda: self.inner.hold(claim, tables))

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        return await self._send(lambda: self.inner.recall(claim, key))

    async def slots(self) -> int:
        return await self._send(self.inner.slots)

    async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
        await self._send(lambda: self.inner.let_go(worker_id, runs))

    async def reconcile(self, job_id: int | None = None) -> float | None:
        return await self._send(lambda: self.inner.reconcile(job_id))


class Broken(RuntimeError):
    """An executor that fails on its own; its worker makes a failure of the task of it."""


class Body:
    """A body that was begun, in a child of this host: the child dies in time, even if the host is paused."""

    def __init__(self, host: Host, claim: Claim) -> None:
        self.host, self.claim = host, claim
        self.is_over = False

    @property
    def is_alive(self) -> bool:
        if self.is_over or self.host.is_dead:
            return False
        return not self.claim.stop_when_cut_off or self.host.clock.monotonic() < self.host.worker.cutoff.kill_at


class ScriptedExecutor:
    """Bodies that take virtual time and end as the dice say."""

    def __init__(self, world: World, host: Host) -> None:
        self.world = world
        self.host = host
        self.services: RunServices | None = None

    def watch(self, cutoff: Cutoff) -> None:
        self.cutoff = cutoff

    async def start(self) -> None:
        """There is nothing to get ready."""

    async def run(self, claim: Claim, started: Started) -> Report:
        world, key = self.world, (claim.task_id, claim.epoch)
        world.note(self.host.name, f"body {claim.task_id}#{claim.epoch} begins")
        body = Body(self.host, claim)
        world.begins(body)
        try:
            return await self._run(claim, key, started)
        finally:
            body.is_over = True

    async def _run(self, claim: Claim, key: tuple[int, int], started: Started) -> Report:
        world = self.world
        if world.state.rows("SELECT * FROM runs WHERE (task_id, epoch) = (?, ?) AND outcome = 'released'", *key):
            world.fail(f"what its worker knows of is not taken from it: {key} of worker {claim.worker_id}")
        started(None)
        data = RunTables(world, self.host.name, claim)
        try:
            if data.is_wanted:
                assert self.services is not None
                await data.hold(self.services)
            await asyncio.sleep(self._lasts_s())
        except ClaimLost as error:
            return Failure(claim.task_id, claim.epoch, f"ClaimLost: {error}", made=())
        except asyncio.CancelledError:
            world.counts["bodies stopped"] += 1
            struggles_s = 0.0 if world.is_calm else world.dice.choice([0.0, 0.0, 1.0, 4.0])
            await asyncio.sleep(min(struggles_s, max(0.0, self.cutoff.kill_at - self.host.clock.monotonic())))
            data.check()
            raise
        return data.settled(self._outcome(claim, data))

    def _lasts_s(self) -> float:
        kind = self.world.dice.random()
        if self.world.is_calm or kind < 0.4:
            return self.world.dice.uniform(0.0, 0.5)
        return self.world.dice.uniform(0.5, 4.0) if kind < 0.85 else self.world.dice.uniform(5.0, 30.0)

    def _outcome(self, claim: Claim, data: RunTables) -> Report:
        kind = 1.0 if self.world.is_calm else self.world.dice.random()
        if kind < 0.12:
            return Failure(claim.task_id, claim.epoch, "ValueError: no", error_types=("builtins.ValueError",))
        if kind < 0.17:
            return Failure(claim.task_id, claim.epoch, "WorkerCrash: gone", crashed=True)
        if kind < 0.18:
            raise Broken("the executor itself failed")
        result: dict[str, Any] = {"task": claim.task_id, "epoch": claim.epoch, "worker": claim.worker_id}
        children = None if self.world.is_calm else self._children(claim, data)
        returned = [] if children is None else children.returned
        marks = [[[number], kind, node] for number, (kind, node) in enumerate(returned)]
        marks += data.hand_on(after=len(marks))
        if marks:
            result |= {"object_type": "pyobj", "value": [None] * len(marks), "marks": marks}
        return Done(claim.task_id, claim.epoch, json.dumps(result), children=children)

    def _children(self, claim: Claim, data: RunTables) -> Children | None:
        """Now and then a body makes tasks, and returns some of them."""
        dice = self.world.dice
        (size,) = self.world.state.ids("SELECT count(*) FROM tasks WHERE job_id = ?", claim.job_id)
        if dice.random() > GROWING or size > TASKS_MAX:
            return None
        self.world.counts["grow"] += 1
        groups = [Group("made") for _ in range(dice.choice([0, 0, 1]))]
        homes = [None, *(group.id for group in groups)]
        made = [Task("some.module.t", name="t", group_id=dice.choice(homes)) for _ in range(dice.randint(1, 3))]
        for task in made:
            if dice.random() < 0.5:
                task.kwargs_json = kwargs_with(*data.some())
        edges = [Edge(*dice.sample(made, 2))] if len(made) > 1 and dice.random() < 0.5 else []
        returned = [node for node in (*made, *groups) if dice.random() < 0.4]
        return Children.of(Submission(claim.job_id, made, groups, edges), returned, claim.group_id)

    def kill(self) -> None:
        """They need no killing."""

    async def close(self) -> None:
        """There is nothing to give back."""


class Host:
    """One process, with two threads: one works, the other beats and controls. Either may hang, both may die."""

    can_die = True

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
        direct = DirectCoordinator(self.database, draw=world.dice.random, clock=self.clock)
        self.coordinator = FaultyCoordinator(world, direct)
        self.worker = self._new_worker()
        self._session = asyncio.Event()
        self._heart: Heartbeat | None = None
        self.threads: list[asyncio.Task[None]] = []

    def _new_worker(self) -> TaskWorker:
        dice = self.world.dice
        worker = TaskWorker(
            self.coordinator,  # type: ignore[arg-type]
            ScriptedExecutor(self.world, self),
            concurrency=dice.choice([1, 2, 4]),
            lanes=self._lanes(),
            node=self._node(),
            grace_s=dice.choice([0.0, 5.0, 30.0]),
            max_tasks=self._tasks_max(dice.choice([None, None, None, 10])),
            clock=self.clock,
        )
        worker.on_session = self._attend
        return worker

    def _tasks_max(self, drawn: int | None) -> int | None:
        """Return after how many tasks the worker leaves; never, if it came with the calm as the one that has it all."""
        return None if self.world.is_calm and self.world.weather.placed else drawn

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
        await self.worker.run()
        self.world.note(self.name, "leaves")
        self._gone()
        for task in self.service.tasks:
            task.cancel()

    async def _serve(self) -> None:
        OF_HOST.set(self)
        session_s = settings().session_s
        control = Control(self.database, new_id(), session_s=session_s, clock=self.clock, reconcilers=RECONCILERS_HERE)
        if self.is_zealous:
            control.leader.try_to_lead = _always  # type: ignore[method-assign]
        controlling = asyncio.create_task(control.run())
        try:
            while True:
                await self._session.wait()
                self._session.clear()
                await self._new_heart(self.worker.id).beat_forever()
        finally:
            controlling.cancel()

    def _new_heart(self, session: int) -> Heartbeat:
        def bring(orders: Orders) -> None:
            self.world.loop.call_soon(lambda: self.worker.obey(orders) if self.worker.id == session else None)

        every_s = settings().beat_every_s
        self._heart = Heartbeat(
            self.coordinator,  # type: ignore[arg-type]
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

    def hear(self, hint: str) -> None:
        if hint == READY:
            self.worker.wake()
        elif hint == ORDERS and self._heart is not None:
            self._heart.ask()

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


def stale_beat(facts: dict[str, Any]) -> dict[str, Any]:
    """A beat as it would be brought again, without what it counts."""
    held: list[Held] = list(facts.get("held") or [])
    return {"known_call": facts.get("known_call", 0), "held": held}
