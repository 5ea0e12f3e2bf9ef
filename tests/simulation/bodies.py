"""The bodies of a simulated process: they are scripted, all around them is real."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.models import Claim, Done, Failure, Group, Report, Task
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.models.node import Edge
from aaiclick.orchestration.models.submission import Submission
from tests.simulation.engine import kwargs_with
from tests.simulation.run_tables import RunTables
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.host import Host

GROWING = 0.15
"""How often a body makes tasks."""

TASKS_MAX = 40
"""In a job of so many, bodies make no more."""


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
