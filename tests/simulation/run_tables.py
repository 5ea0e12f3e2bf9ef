"""What one simulated run does with tables, as the real one does: it holds first, and says at its end what it left."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aaiclick.orchestration.execution.runs.claim_inputs import narrowed
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.models import Claim, Failure, Report
from aaiclick.orchestration.rules.values.run_tables import run_table, tables_named
from tests.simulation.engine import marks_for

if TYPE_CHECKING:
    from tests.simulation.world import World


class RunTables:
    """The tables that a run is given, and those it makes."""

    def __init__(self, world: World, host: str, claim: Claim) -> None:
        self.world, self.host, self.claim = world, host, claim
        own = narrowed(claim)  # as executors do: the inputs of a whole batch of claims come together
        named = map(tables_named, [own.kwargs_json, *own.inputs.values()])
        self.inputs = sorted(set().union(*named))
        self.makes = 0 if world.is_calm else world.dice.choice([0, 0, 1, 1, 2])
        self.mine: list[str] = []
        self.kept: set[str] = set()
        self.is_held = False

    @property
    def is_wanted(self) -> bool:
        return bool(self.inputs or self.makes)

    async def hold(self, services: RunServices) -> None:
        """Hold all that it may make; what it reads is there, and then it makes its own."""
        key = (self.claim.task_id, self.claim.epoch)
        names = [run_table(*key, number) for number in range(1, max(self.makes, 1) + 1)]
        if self.claim.registered and len(names) == 1:
            self.world.counts["known with the claim"] += 1
        else:
            await services.hold(self.claim, names)
        self.is_held = True
        self.world.counts["hold"] += 1
        is_live = self.world.state.rows("SELECT 1 FROM claims WHERE (task_id, epoch) = (?, ?)", *key)
        gone = [table for table in self.inputs if table not in self.world.engine.tables]
        if is_live and gone:
            self.world.fail(f"a run finds its inputs: {key} needs {gone}")
        for table in names[: self.makes]:
            await asyncio.sleep(self.world.dice.choice([0.0, 0.5, 3.0]))
            self.world.engine.make(table)
            self.mine.append(table)

    def check(self) -> None:
        """A body that goes on keeps what it holds, whatever became of its claim, as long as its session lives."""
        worker = self.claim.worker_id
        is_live = self.world.state.rows("SELECT 1 FROM workers WHERE id = ? AND status != 'stopped'", worker)
        gone = [table for table in (*self.inputs, *self.mine) if table not in self.world.engine.tables]
        if self.is_held and is_live and gone and not self.world.is_over:
            self.world.fail(f"a body keeps what it holds: {self.claim.task_id}#{self.claim.epoch} lacks {gone}")

    def some(self) -> list[str]:
        """Some of what it has, to be handed on."""
        if not self.is_held:
            return []
        chosen = [table for table in (*self.inputs, *self.mine) if self.world.dice.random() < 0.4]
        self.kept.update(chosen)
        return chosen

    def hand_on(self, after: int) -> list[Any]:
        return marks_for(*self.some(), after=after)

    def settled(self, report: Report) -> Report:
        """Drop what nobody gets, and tell what is left; a process that crashed does neither."""
        self.check()
        if not self.is_held or (isinstance(report, Failure) and report.crashed):
            return report
        kept = set() if isinstance(report, Failure) else self.kept
        for table in self.mine:
            if table not in kept and self.world.dice.random() < 0.8:
                self.world.engine.drop(table, self.host)
        return replace(report, made=tuple(table for table in self.mine if table in self.world.engine.tables))
