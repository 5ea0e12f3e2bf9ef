"""Many hands do random things to a few jobs at the same time, some are cut off in the middle; then all is counted."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress

import pytest

from aaiclick.errors import AaiclickError, CircularDependencyError, TransientStoreError
from aaiclick.orchestration.models import Claim, Group, Job
from aaiclick.orchestration.models.node import Edge, Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.moves import ripples
from tests.support.orchestra import Orchestra, done, failure, make, orchestra

LONG = "TEST_LONG" in os.environ
HANDS = 8
ROUNDS = 40 if LONG else 8
DEEDS_A_ROUND = 5


class Storm:
    """A few jobs, and what may happen to them."""

    def __init__(self, stage: Orchestra, seed: int) -> None:
        self.stage = stage
        self.dice = random.Random(seed)
        self.jobs: list[Job] = []
        self.nodes: dict[int, list[Node]] = {}
        self.held: list[Claim] = []
        self.outcomes: Counter[str] = Counter()
        self.reservations = [0]

    def grow(self, job_id: int, size: int) -> Submission:
        """New tasks and groups, mostly inside what is there, with edges mostly forwards."""
        known = self.nodes.setdefault(job_id, [])
        stored = [node.id for node in known if isinstance(node, Group)]
        groups = [Group("g", parent_group_id=self.dice.choice([None, *stored])) for _ in range(self.dice.randint(0, 2))]
        homes = [None, *stored, *(group.id for group in groups)]
        policy = RetryPolicy(1, delay_s=0.0)
        tasks = [make(group_id=self.dice.choice(homes), retry=policy) for _ in range(self.dice.randint(1, size))]
        everyone: list[Node] = [*known, *groups, *tasks]
        pairs = [sorted(self.dice.choices(everyone, k=2), key=lambda node: node.id) for _ in range(size)]
        return Submission(job_id, tasks, groups, [Edge(*pair) for pair in pairs if pair[0] is not pair[1]])

    async def begin(self) -> None:
        job = await self.stage.submit(make("first"), make("second"))
        self.jobs.append(job)
        with suppress(CircularDependencyError):
            await self.apply(job)

    async def apply(self, job: Job) -> None:
        graph = self.grow(job.id, self.dice.choice([2, 6]))
        await self.stage.coordinator.submit(graph)
        self.nodes[job.id] += [*graph.tasks, *graph.groups]

    async def claim(self) -> None:
        self.held += await self.stage.claim(
            self.dice.choice([1, 3, 8]), reserved_for=self.dice.choice(self.reservations)
        )

    async def report(self) -> None:
        self.dice.shuffle(self.held)
        batch, self.held[:] = self.held[:4], self.held[4:]
        reports = [failure(claim) if self.dice.random() < 0.2 else done(claim) for claim in batch]
        await self.stage.database.transact(lambda s: take_reports(s, self.stage.worker, reports, lambda: 0.0))

    async def release(self) -> None:
        if self.held:
            await self.stage.coordinator.release(self.stage.worker, [self.held.pop()])

    async def reserve(self, job: Job) -> None:
        self.reservations.append(len(self.reservations))
        await self.stage.coordinator.reserve(job.id, self.reservations[-1])

    def deed(self) -> Awaitable[object]:
        job = self.dice.choice(self.jobs)
        choices = {
            "apply": 6,
            "claim": 6,
            "report": 8,
            "ripple": 4,
            "reconcile": 1,
            "release": 1,
            "cancel": 0.3,
            "reserve": 0.3,
        }
        match self.dice.choices(list(choices), list(choices.values()))[0]:
            case "apply":
                return self.apply(job)
            case "claim":
                return self.claim()
            case "report":
                return self.report()
            case "ripple":
                return self.stage.database.transact(ripples.work_one_ripple)
            case "reconcile":
                return self.stage.coordinator.reconcile()
            case "release":
                return self.release()
            case "cancel":
                return self.stage.coordinator.cancel(job.id)
        return self.reserve(job)

    async def hand(self, cut_off: bool) -> None:
        for _ in range(DEEDS_A_ROUND):
            doing = asyncio.ensure_future(self.deed())
            if cut_off and self.dice.random() < 0.2:
                await asyncio.sleep(self.dice.random() * 0.01)
                doing.cancel()
            (said,) = await asyncio.gather(doing, return_exceptions=True)
            self.outcomes[type(said).__name__] += 1
            if isinstance(said, Exception) and not isinstance(said, AaiclickError):
                raise said
            assert not isinstance(said, TransientStoreError)

    async def rage(self, *, cut_off: bool) -> None:
        for _ in range(ROUNDS):
            await self.begin()
            async with asyncio.TaskGroup() as hands:
                for _ in range(HANDS):
                    hands.create_task(self.hand(cut_off))
            assert not await self.stage.violations(at_rest=False)

    async def end(self) -> None:
        """After the storm everything can be brought to its end."""
        await self.stage.coordinator.reconcile()
        for reserved_for in self.reservations:
            for job in self.jobs:
                if (await self.stage.job(job)).reserved_for == reserved_for:
                    await self.stage.coordinator.reserve(job.id, 0)
        await self.stage.complete(*self.held)
        await self.stage.drain()
        assert not await self.stage.violations()


@pytest.mark.timeout(600 if LONG else 120)
@pytest.mark.parametrize("cut_off", [False, True], ids=["whole", "cut off"])
@pytest.mark.parametrize("seed", range(3 if LONG else 1))
async def test_after_a_storm_everything_adds_up(
    migrated_sql_url: str, seed: int, cut_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripples, "STEP", 3)
    async with orchestra(migrated_sql_url) as stage:
        storm = Storm(stage, seed)
        await storm.rage(cut_off=cut_off)
        await storm.end()
        print(storm.outcomes)
