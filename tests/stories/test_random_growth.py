"""Runs that grow by chance, among clears, failures and applies: counters hold, nobody begins early, every job ends."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from sqlalchemy import select

from aaiclick.errors import Conflict, GraphError
from aaiclick.orchestration.models import Claim, Group, Job, Task
from aaiclick.orchestration.models.children import stored_node
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.store.graphs import expansions
from aaiclick.orchestration.store.moves import downstream, ripples
from aaiclick.orchestration.store.stored_results import read_named
from aaiclick.orchestration.store.tables import groups, tasks
from tests.support.growing import grown
from tests.support.invariants import look, violations_in
from tests.support.naive import COMPLETE, ENDED, naive_of
from tests.support.orchestra import Orchestra, done, failure, make, orchestra
from tests.support.walk import some_rule

SEEDS = range(300) if os.environ.get("TEST_LONG") == "1" else (15, 21)
"""These go all the way."""
STEPS = 40
TASKS_MAX = 60


@pytest.fixture
async def stage(migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Orchestra]:
    """What is much is little here: ripples, gathered edges and whole graphs are met early."""
    monkeypatch.setattr(ripples, "STEP", 2)
    monkeypatch.setattr(expansions, "EDGES_MAX", 3)
    monkeypatch.setattr(downstream, "WAVES_ASKED", 2)
    async with orchestra(migrated_sql_url) as opened:
        yield opened


@dataclass
class Walk:
    """One way through a job that grows."""

    stage: Orchestra
    draw: random.Random
    job: Job
    held: list[Claim] = field(default_factory=list)
    made: int = 0

    async def step(self) -> None:
        ways: dict[Callable[[], Awaitable[None]], int] = {
            self.claim: 6,
            self.grow: 6,
            self.complete: 4,
            self.fail: 2,
            self.clear: 2,
            self.apply: 2,
            self.ripple: 3,
        }
        (way,) = self.draw.choices(list(ways), list(ways.values()))
        await way()
        await self.check(way.__name__)

    async def check(self, after: str) -> None:
        """The counters hold; once all is told, who may begin and who never will is what a model without them says."""
        picture = await self.stage.database.read(look)
        wrong = violations_in(picture)
        assert wrong == [], f"after {after}: {wrong}"
        if picture.rows["ripples"]:
            return
        model = naive_of(picture, self.job.id)
        assert {row.task_id for row in picture.rows["ready"]} == model.ready(), f"after {after}"
        assert picture.jobs[self.job.id].status == model.job_status(), f"after {after}"
        stored = dict(model.status)
        model.settle()
        assert model.status == stored, f"after {after}"

    # ------------------------------------------------------------ ways

    async def claim(self) -> None:
        """Whoever begins has all that its arguments name, as far as its rule makes it wait for that."""
        for claim in await self.stage.claim(self.draw.randrange(1, 4)):
            found = await self.stage.database.read(lambda session, text=claim.kwargs_json: read_named(session, [text]))  # type: ignore[misc]
            rows = {row.id: row for row in await self.stage.rows(select(tasks).where(tasks.c.id.in_(found.texts)))}
            rule = str((await self.stage.task(claim)).when)
            enough = COMPLETE if rule == "all_completed" else ENDED
            early = [row.name for row in rows.values() if row.status not in enough and row.id != claim.task_id]
            assert rule.startswith("one_") or not early, f"{claim.name} ({rule}) began before {early}"
            self.held.append(claim)

    async def complete(self) -> None:
        if self.held:
            await self.stage.report(done(self.taken()))

    async def fail(self) -> None:
        if self.held:
            await self.stage.report(failure(self.taken()))

    async def grow(self) -> None:
        """One or two of those that run make tasks, and return some of them, or of what is there."""
        reports = []
        for _ in range(min(len(self.held), self.draw.choice([1, 1, 2]))):
            claim = self.taken()
            stored = await self.stored()
            new = self.some(stored)
            chosen = [node for node in new if self.draw.random() < 0.6]
            chosen += [node for node in stored if self.draw.random() < 0.03]
            wanted = [node for node in chosen if node.id not in (claim.task_id, claim.group_id)]
            reports.append(grown(claim, *new, returns=wanted))
        await self.stage.report(*reports)

    async def clear(self) -> None:
        stored = [node for node in await self.stored() if node.kind == "task"]
        await self.stage.coordinator.clear(self.draw.choice(stored).id)

    async def apply(self) -> None:
        with suppress(GraphError, Conflict):  # it may well be too late
            await self.stage.apply(self.job, *self.some(await self.stored()))

    async def ripple(self) -> None:
        await self.stage.database.transact(ripples.work_one_ripple)

    # ------------------------------------------------------------ chances

    def taken(self) -> Claim:
        return self.held.pop(self.draw.randrange(len(self.held)))

    async def stored(self) -> list[Node]:
        found: list[Node] = []
        for kind, table in (("task", tasks), ("group", groups)):
            rows = await self.stage.rows(select(table.c.id).where(table.c.job_id == self.job.id).order_by(table.c.id))
            found += [stored_node(kind, row.id) for row in rows]
        for node in found:
            if isinstance(node, Group):
                node.members = []
        return found

    def some(self, stored: list[Node]) -> list[Node]:
        """New tasks and groups, in each other or in stored ones, that wait for each other or for stored ones."""
        if self.made >= TASKS_MAX:
            return []
        around: list[Node] = [node for node in stored if node.kind == "group"]
        new: list[Node] = []
        for _ in range(self.draw.randrange(1, 6)):
            group = self.draw.choice(around) if around and self.draw.random() < 0.5 else None
            self.made += 1
            if self.draw.random() < 0.3:
                node: Node = Group(
                    f"g{self.made}", parent_group_id=group.id if group else None, when=some_rule(self.draw)
                )
                around.append(node)
            else:
                given = [each for each in (*new, *stored) if self.draw.random() < 0.1]
                node = make(f"t{self.made}", kwargs={"x": given}, group_id=group.id if group else None)
                node.critical, node.when = self.draw.random() < 0.7, some_rule(self.draw)
            new.append(node)
        for node in stored:
            if self.draw.random() < 0.03:
                self.draw.choice(new) >> node
        return new


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_job_that_grows_by_chance(stage: Orchestra, seed: int) -> None:
    first, second = make("first"), Group("second")
    member = make("member", group_id=second.id)
    draw = random.Random(seed)
    last = Task("some.module.last", {"x": [first, second]}, name="last", when=some_rule(draw))
    walk = Walk(stage, draw, await stage.submit(first, second, member, last))
    for _ in range(STEPS):
        if (await stage.job(walk.job)).status in ENDED_JOB:
            break
        await walk.step()
    while walk.held:
        await walk.complete()
    await stage.drain()
    assert (await stage.job(walk.job)).status in ENDED_JOB
    assert await stage.violations() == []
