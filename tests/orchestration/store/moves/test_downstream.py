"""Who is downstream, asked wave by wave or read as a whole: the answer is the same."""

from __future__ import annotations

import random

import pytest

from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.store.moves import downstream
from aaiclick.orchestration.store.moves.downstream import Downstream, find_downstream
from tests.support.band import band, filled, member
from tests.support.naive import NaiveJob
from tests.support.naive import downstream as meant
from tests.support.orchestra import Orchestra, extension, make

__all__ = ["band"]


@pytest.fixture(autouse=True, params=[0, 1, 100], ids=["at once", "after a wave", "wave by wave"])
def waves(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downstream, "WAVES_ASKED", request.param)


async def find(band: Orchestra, job_id: int, *roots: Task) -> Downstream:
    return await band.database.read(lambda session: find_downstream(session, job_id, [root.id for root in roots]))


async def test_nearest_first_with_the_groups_that_are_touched(band: Orchestra) -> None:
    first, group, last = make("first"), Group("g"), make("last")
    inner, empty = filled("inner", inside=group), Group("empty", parent_group_id=group.id)
    beside = filled("beside")
    first >> group >> last
    job = await band.submit(first, group, inner, empty, beside, last)
    found = await find(band, job.id, first)
    assert [*found.tasks] == [first.id, *(task for task in found.tasks if task not in (first.id, last.id)), last.id]
    assert len(found.tasks) == 3
    assert found.reopened == {group.id, inner.id}
    assert found.held == {group.id, inner.id, empty.id}
    assert found.touched == {group.id, inner.id, empty.id}


async def test_a_lone_task_touches_its_own_groups_only(band: Orchestra) -> None:
    outer, other = Group("outer"), filled("other")
    inner = Group("inner", parent_group_id=outer.id)
    task = member(inner)
    job = await band.submit(outer, inner, other, task)
    found = await find(band, job.id, task)
    assert (found.tasks, found.held, found.touched) == ({task.id: inner.id}, set(), {inner.id, outer.id})


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seed", range(10))
async def test_random_graphs_agree_with_a_model_that_follows_every_path(band: Orchestra, seed: int) -> None:
    dice = random.Random(seed)
    made: list[Group] = []
    for number in range(5):
        made.append(Group(f"g{number}", parent_group_id=dice.choice([None, *(group.id for group in made)])))
    everyone = [make(f"t{number}", group_id=dice.choice([None, *(g.id for g in made)])) for number in range(12)]
    nodes = [*made, *everyone]
    model = NaiveJob()
    job = await band.submit(*nodes)
    model.add(extension(job, *nodes))
    model.around |= {node.id: node._group_id for node in nodes}
    model.status |= {task.id: "pending" for task in everyone}
    for _ in range(15):
        previous, following = dice.sample(nodes, 2)
        model.edges.add((previous.id, following.id))
        if model.has_cycle():
            model.edges.discard((previous.id, following.id))
            continue
        previous >> following
        await band.apply(job, previous, following)
    for task in everyone:
        assert set((await find(band, job.id, task)).tasks) == meant(model, [task.id])
