"""Eight claimers and eight completers in two processes over one graph: nothing twice, nothing lost, all counted."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence

import pytest
from sqlalchemy import func, select

from aaiclick.config import reset_settings
from aaiclick.orchestration.models import Group, Job, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.tables import claims, events, ready, runs
from tests.support.crew import Crew, Deeds, other_process, twice
from tests.support.orchestra import Orchestra, make, orchestra

LONG = "TEST_LONG" in os.environ


def layers(width: int, depth: int, dice: random.Random) -> list[Node]:
    """Layers of tasks that wait for some of the layer before; every third is a group in a group, waited for as one."""
    nodes: list[Node] = []
    before: Sequence[Node] = []
    for level in range(depth):
        group = inner = None
        if level % 3 == 1:
            group = Group(f"layer {level}")
            inner = Group(f"inner {level}", parent_group_id=group.id)
            nodes += [group, inner]
            dice.choice(list(before)) >> group
        layer = [task_of(level, group if dice.random() < 0.5 else inner, dice) for _ in range(width)]
        if level == depth - 1:
            layer.append(make("bad last", retry=RetryPolicy(1, delay_s=0)))
        for task in layer:
            for previous in dice.sample(list(before), min(len(before), dice.choice([0, 1, 1, 2, 5]))):
                previous >> task
        nodes += layer
        before = layer if group is None else [group]
    return nodes


def task_of(level: int, group: Group | None, dice: random.Random) -> Task:
    kinds = ["plain"] * 16 + ["flaky"] * 3 + (["grows"] if group is not None else [])
    return make(
        f"{dice.choice(kinds)} {level}",
        group_id=None if group is None else group.id,
        retry=RetryPolicy(2, delay_s=dice.choice([0.0, 0.01])),
        priority=dice.choice([0, 0, 1]),
    )


def fan(width: int) -> list[Node]:
    """One, then many, then one."""
    first, last = make("plain first"), make("plain last")
    many = [make("plain many") for _ in range(width)]
    first >> many >> last
    return [first, *many, last]


def failing(width: int) -> list[Node]:
    """Half of it never runs, because what it waits for fails."""
    bad, group, after = make("bad"), Group("doomed"), make("plain after")
    inside = [make("plain doomed", group_id=group.id) for _ in range(width)]
    bad >> group >> after
    return [bad, group, *inside, after, *(make("plain free") for _ in range(width))]


@pytest.fixture(autouse=True)
def long_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody beats here: on a busy machine a session would end before the jobs do."""
    monkeypatch.setenv("AAICLICK_SESSION_SECONDS", "3600")
    reset_settings()


async def crews(stage: Orchestra, jobs: list[Job], hands: int, *, processes: int) -> list[Deeds]:
    """So many claimers and as many completers, shared out over the processes."""
    url, ids, each = stage.database.url, [job.id for job in jobs], hands // processes
    others = [other_process(url, ids, each, each, seed) for seed in range(1, processes)]
    return list(await asyncio.gather(Crew(url, ids, each, each, 0).work(), *others))


async def check(stage: Orchestra, deeds: list[Deeds], jobs: list[Job]) -> None:
    assert twice(deeds) == []
    assert sum(each.refused for each in deeds) == 0
    assert not await stage.violations()
    for table in (ready, claims):
        assert await stage.scalar(select(func.count()).select_from(table)) == 0
    ended = runs.c.outcome.in_(["completed", "failed", "released"])
    assert await stage.scalar(select(func.count()).select_from(runs).where(ended)) == sum(
        len(each.claimed) for each in deeds
    )
    ends = select(func.count()).select_from(events)
    ends = ends.where(events.c.task_id.is_(None), events.c.status.in_(["completed", "failed"]))
    assert await stage.scalar(ends) == len(jobs)


@pytest.mark.timeout(600 if LONG else 120)
@pytest.mark.parametrize(
    ("dialect", "hands", "width"),
    [("postgres", 8, 150), ("mariadb", 8, 100), ("sqlite", 2, 100)],
    indirect=["dialect"],
)
async def test_nothing_is_claimed_twice_or_lost_and_no_deadlock_reaches_anyone(
    migrated_sql_url: str, hands: int, width: int
) -> None:
    width = width * 5 if LONG else width
    async with orchestra(migrated_sql_url) as stage:
        layered = await stage.submit(*layers(width, 12, random.Random(1)), name="layers")
        fanned = await stage.submit(*fan(width * 5), name="fan")
        failed = await stage.submit(*failing(width * 2), name="failing")
        deeds = await crews(stage, jobs := [layered, fanned, failed], hands, processes=2)
        await check(stage, deeds, jobs)
        statuses = [(await stage.job(job)).status for job in jobs]
        assert statuses == ["failed", "completed", "failed"]
        print(f"{sum(len(each.claimed) for each in deeds)} runs, {sum(each.tried_again for each in deeds)} tried again")
