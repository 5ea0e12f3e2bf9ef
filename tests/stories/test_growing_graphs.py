"""A job that grows while it runs: whatever is applied between claims, it ends exactly once, with all counters right."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from unittest import mock

import pytest
from sqlalchemy import select

from aaiclick.errors import AlreadyStarted, CircularDependencyError, Conflict, GroupComplete, JobEnded
from aaiclick.orchestration.coordinator import direct
from aaiclick.orchestration.models import Claim, Group, Job, JobStatus, Report, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.tables import events
from tests.support.orchestra import Orchestra, done, failure, make, orchestra, stay

SEEDS = range(60 if os.environ.get("TEST_LONG") == "1" else 2)
SERVERS = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
REFUSALS = (AlreadyStarted, GroupComplete, CircularDependencyError)
"""What may well be refused, depending on how far the job is."""


@pytest.fixture
async def band(migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Orchestra]:
    """Ripples are postponed early, so that applies meet them under way."""
    monkeypatch.setattr(ripples, "STEP", 2)
    async with orchestra(migrated_sql_url) as opened:
        yield opened


@dataclass
class Grower:
    """Thinks of something to add, by chance; the same seed thinks the same."""

    draw: random.Random
    tasks: list[Task] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    def begin(self) -> list[Node]:
        return [self.new_task() for _ in range(3)]

    def new_task(self) -> Task:
        group = self.draw.choice([None, *self.groups, *self.groups[-2:]])
        task = make(
            f"t{len(self.tasks)}", group_id=group.id if group else None, max_retries=self.draw.choice([0, 0, 1])
        )
        task.critical = self.draw.random() < 0.8
        self.tasks.append(task)
        return task

    def new_group(self) -> Group:
        parent = self.draw.choice([None, *self.groups])
        group = Group(f"g{len(self.groups)}", parent_group_id=parent.id if parent else None)
        self.groups.append(group)
        return group

    def think(self) -> list[Node]:
        """Some new nodes, some new edges, and what to apply of them."""
        fresh: list[Node] = [self.new_group() for _ in range(self.draw.choice([0, 0, 1]))]
        fresh += [self.new_task() for _ in range(self.draw.choice([0, 1, 2, 6]))]
        touched = list(fresh)
        for _ in range(self.draw.choice([0, 1, 3])):
            previous = self.draw.choice([*self.tasks, *self.groups])
            following = self.draw.choice([*self.tasks[-6:], *self.groups, *self.groups])
            if previous is not following:
                touched.append(following.depends_on(previous))
        return touched

    def forget(self, touched: list[Node]) -> None:
        """Take back what was refused: edges, and nodes that were not stored."""
        for node in touched:
            for edge in [edge for edge in node.incoming if not edge.applied]:
                edge.next._in.remove(edge)  # type: ignore[union-attr]
                edge.previous._out.remove(edge)  # type: ignore[union-attr]
        self.tasks = [task for task in self.tasks if task.applied]
        self.groups = [group for group in self.groups if group.applied]
        for group in self.groups:
            group.members[:] = [member for member in group.members if member.applied]


@contextmanager
def ripples_left_at_times(draw: random.Random) -> Iterator[None]:
    """Half of the time, whoever should work off what was postponed dies before."""
    work_ripples = direct.work_ripples

    async def perhaps(database: Database, job_id: int | None) -> None:
        if draw.random() < 0.5:
            await work_ripples(database, job_id)

    with mock.patch.object(direct, "work_ripples", perhaps):
        yield


async def ended_once(band: Orchestra, job: Job) -> Job:
    """The job has ended, once, with every task of it, and every counter says so."""
    ended = await band.job(job)
    assert ended.status in ENDED_JOB
    assert set((await band.statuses(job)).values()) <= set(ENDED_TASK)
    moves = await band.rows(select(events.c.move).where(events.c.job_id == job.id, events.c.task_id.is_(None)))
    counted = Counter(row.move for row in moves)
    assert counted["create"] == counted["start"] == counted["complete"] + counted["fail"] == 1
    assert await band.violations() == []
    return ended


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_job_that_grows_between_claims_ends_once(band: Orchestra, seed: int) -> None:
    draw = random.Random(seed)
    grower = Grower(draw)
    job = await band.submit(make("keeper"), *grower.begin())
    (kept,) = await band.claim(limit=1)
    with ripples_left_at_times(draw):
        for _ in range(25):
            await stay(band)
            touched = grower.think()
            with suppress(*REFUSALS):
                await band.apply(job, *touched)
            grower.forget(touched)
            assert await band.violations(at_rest=False) == []
            for claim in await band.claim(limit=draw.choice([1, 1, 3])):
                await band.report(failure(claim) if draw.random() < 0.1 else done(claim))
            if draw.random() < 0.3:
                await band.let_time_pass()
                await band.coordinator.reconcile()
    await band.complete(kept)
    await band.drain()
    await ended_once(band, job)
    with pytest.raises(JobEnded):
        await band.apply(job, make("too late"))


@SERVERS
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_job_that_grows_while_others_work_on_it_ends_once(band: Orchestra, seed: int) -> None:
    """Four who claim and report, three who apply, all at once."""
    draw = random.Random(seed)
    growers = [Grower(random.Random(f"{seed} {index}")) for index in range(3)]
    keeper = make("keeper")
    job = await band.submit(keeper, *(node for grower in growers for node in grower.begin()))
    growing = asyncio.Event()
    growing.set()
    held: list[Claim] = []

    async def grow(grower: Grower) -> None:
        for _ in range(12):
            await stay(band)
            touched = grower.think()
            with suppress(*REFUSALS):
                await band.apply(job, *touched)
            grower.forget(touched)

    async def work() -> None:
        idle = 0
        while growing.is_set() or idle < 5:
            claims = await band.claim(limit=3)
            idle = 0 if claims else idle + 1
            held.extend(claim for claim in claims if claim.name == "keeper")
            reports: list[Report] = [
                failure(claim) if draw.random() < 0.05 else done(claim) for claim in claims if claim.name != "keeper"
            ]
            await band.report(*reports)
            if not claims:
                await band.coordinator.reconcile()
                await asyncio.sleep(0.005)

    async def all_grow() -> None:
        await asyncio.gather(*(grow(grower) for grower in growers))
        growing.clear()

    await asyncio.gather(all_grow(), *(work() for _ in range(4)))
    assert await band.violations(at_rest=False) == []
    await band.complete(*held)
    await band.drain()
    await ended_once(band, job)


async def test_a_job_that_grows_by_a_task_behind_each_task_ends_after_the_last(band: Orchestra) -> None:
    """The chain is never longer than what is already there, until it stops growing."""
    last = make("t0")
    job = await band.submit(last)
    for step in range(1, 40):
        (claim,) = await band.claim()
        following = make(f"t{step}")
        last >> following
        await band.apply(job, following)
        assert (await band.job(job)).status == JobStatus.RUNNING
        await band.complete(claim)
        last = following
    await band.drain()
    ended = await ended_once(band, job)
    assert (ended.status, ended.completed_tasks, ended.total_tasks) == (JobStatus.COMPLETED, 40, 40)


async def test_a_group_that_grows_while_it_runs_completes_after_the_last_member(band: Orchestra) -> None:
    """As `map` does it: a task that runs adds its parts to its own group; who waits for the group waits for all."""
    group, collect = Group("parts"), make("collect")
    make("split", group_id=group.id)
    group >> collect
    job = await band.submit(collect)
    (split,) = await band.claim()
    for index in range(30):
        await band.apply(job, make(f"part {index}", group_id=group.id))
    await band.complete(split)
    order = [claim.name for claim in await band.drain(limit=7)]
    assert order == [*(f"part {index}" for index in range(30)), "collect"]
    await ended_once(band, job)


@SERVERS
async def test_a_task_added_at_the_very_end_is_either_taken_in_or_refused(band: Orchestra) -> None:
    """The last task completes while another is applied: the job ends with it, or without it, never half."""
    for _ in range(10):
        job = await band.submit(make("last"))
        (claim,) = await band.claim()
        late = make("late")
        _, applied = await asyncio.gather(band.complete(claim), band.apply(job, late), return_exceptions=True)
        if isinstance(applied, BaseException):
            assert isinstance(applied, JobEnded | Conflict)
            assert (await band.job(job)).total_tasks == 1
        else:
            assert (await band.job(job)).status == JobStatus.RUNNING
            await band.drain()
        await ended_once(band, job)
