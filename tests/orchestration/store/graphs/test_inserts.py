"""A new job with its graph: all of it in one transaction, or nothing; and graphs as large as they come.

TEST_LONG=1 runs the large ones at their full size.
"""

import logging
import os
import random
import sys
from itertools import pairwise

import pytest
from sqlalchemy import func, select

from aaiclick.errors import CircularDependencyError, CrossJobDependency, UnknownNode
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Group, JobStatus, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import Shape
from aaiclick.orchestration.store.graphs.inserts import names_of, refuse_cycles, refuse_unknown, shape_of
from aaiclick.orchestration.store.tables import dependencies, events, groups, tasks
from tests.support.band import band
from tests.support.contents import refused
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]

LONG = os.environ.get("TEST_LONG") == "1"
NO_ONES_ID = 12345


async def count(band: Orchestra, table: object) -> int:
    return int(await band.scalar(select(func.count()).select_from(table)))  # type: ignore[arg-type]


# ---------------------------------------------------------------- stored


async def test_a_new_job_is_stored_with_all_its_counters(band: Orchestra) -> None:
    source, outer, last = make("source"), Group("outer"), make("last")
    with outer:
        make("direct")
        with Group("inner"):
            make("deep")
    source >> outer >> last
    job = await band.submit(last, name="load")
    assert (job.name, job.status, job.total_tasks, job.open_tasks) == ("load", JobStatus.PENDING, 4, 4)
    assert await band.ready_names() == ["source"]
    assert await band.violations() == []
    (created,) = await band.rows(select(events.c.move, events.c.status))
    assert tuple(created) == ("create", "pending")
    assert [claim.name for claim in await band.drain(limit=1)] == ["source", "direct", "deep", "last"]
    assert await band.violations() == []


async def test_a_job_without_tasks_stays_pending_until_it_gets_some(band: Orchestra) -> None:
    """It is neither complete nor stuck."""
    group = Group("g")
    job = await band.submit(group)
    await band.coordinator.reconcile()
    assert await band.claim() == []
    assert (await band.job(job)).status == JobStatus.PENDING
    assert await band.violations() == []
    await band.apply(job, make("at last", group_id=group.id))
    await band.drain()
    assert (await band.job(job)).status == JobStatus.COMPLETED
    assert await band.violations() == []


async def test_a_job_of_nothing_at_all_is_stored_too(band: Orchestra) -> None:
    job = await band.submit()
    assert (job.status, job.total_tasks) == (JobStatus.PENDING, 0)
    assert await band.violations() == []


async def test_equal_edges_are_one(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    for _ in range(3):
        first >> second
    await band.submit(second)
    assert await count(band, dependencies) == 1
    assert await band.violations() == []
    assert len(await band.drain()) == 2


async def test_whoever_waits_for_an_empty_group_does_not_have_to_and_is_told(
    band: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    """A group with nothing but empty groups inside is empty too."""
    outer = Group("hollow")
    Group("inner", parent_group_id=outer.id)
    after = make("after")
    outer >> after
    with caplog.at_level(logging.WARNING, "aaiclick"):
        await band.submit(after)
    assert await band.ready_names() == ["after"]
    assert "'hollow' is empty" in caplog.text
    assert await band.violations() == []


async def test_an_empty_group_nobody_waits_for_is_nobodys_business(
    band: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "aaiclick"):
        await band.submit(make(), Group("hollow"))
    assert caplog.text == ""


async def test_everything_about_a_task_is_stored(band: Orchestra) -> None:
    first = make("first")
    with Group("g"):
        task = Task(
            "some.module.f", {"x": first}, name="näme 🚀", max_retries=3, timeout_s=1.5, priority=-2, critical=False
        )
    job = await band.submit(task, reserved_for=4)
    read = await band.task(task)
    for field in ("id", "name", "entrypoint", "kwargs_json", "group_id", "retry", "timeout_s", "priority", "critical"):
        assert getattr(read, field) == getattr(task, field), field
    assert (read.job_id, read.reserved_for, read.needs_inputs, read.max_retries) == (job.id, 4, True, 3)
    assert read.created_at is not None
    assert read.created_at.utcoffset() is not None


# ---------------------------------------------------------------- refused


async def test_cycles_of_every_kind_store_nothing(band: Orchestra) -> None:
    def task_and_task() -> Node:
        first, second = make("first"), make("second")
        return first >> second >> first

    def group_and_group() -> Node:
        first, second = Group("first"), Group("second")
        return first >> second >> first

    def group_and_member() -> Node:
        group = Group("g")
        return group >> make("inside", group_id=group.id)

    def member_and_group_far_around() -> Node:
        with Group("outer") as outer, Group("middle"), Group("inner"):
            return make("inside") >> outer

    def groups_inside_each_other() -> Node:
        first, second = Group("first"), Group("second")
        first.parent_group_id, second.parent_group_id = second.id, first.id
        return first

    for build in (
        task_and_task,
        group_and_group,
        group_and_member,
        member_and_group_far_around,
        groups_inside_each_other,
    ):
        async with refused(band.database, CircularDependencyError) as caught:
            await band.submit(build(), make("beside"))
        steps = caught.value.path.split(" → ")
        assert len(steps) > 2
        assert steps[0] == steps[-1]


async def test_an_argument_can_close_a_cycle_too(band: Orchestra) -> None:
    with Group("g") as group:
        inside = Task("some.module.f", {"x": group}, name="inside")
    async with refused(band.database, CircularDependencyError, match=r"'inside' → group 'g'|group 'g' → task 'inside'"):
        await band.submit(inside)


async def test_a_group_that_no_one_holds_is_refused(band: Orchestra) -> None:
    async with refused(band.database, UnknownNode, match=f"task 'lost' names group {NO_ONES_ID}"):
        await band.submit(make("lost", group_id=NO_ONES_ID))


async def test_what_is_stored_elsewhere_is_refused(band: Orchestra) -> None:
    theirs = make("theirs")
    await band.submit(theirs)
    async with refused(band.database, CrossJobDependency, match="'theirs'"):
        await band.submit(theirs >> make("ours"))
    async with refused(band.database, CrossJobDependency, match="'theirs'"):
        await band.submit(theirs)


def test_the_shape_is_ids_alone() -> None:
    with Group("g") as group:
        first, second = make("first"), make("second")
    first >> second
    first >> second
    submission = gather(1, [group])
    assert shape_of(submission) == Shape(
        {first.id: group.id, second.id: group.id}, {group.id: None}, {(first.id, second.id)}
    )
    assert names_of(submission) == {node.id: str(node) for node in (group, first, second)}


def test_a_node_without_a_name_is_shown_by_its_id() -> None:
    with pytest.raises(CircularDependencyError, match=r"task 'a' → 2 → task 'a'|2 → task 'a' → 2"):
        refuse_cycles(Shape({1: None, 2: None}, {}, {(1, 2), (2, 1)}), {1: "task 'a'"})


def test_a_long_cycle_is_shown_by_its_beginning_and_its_end() -> None:
    ring = {(step, step % 1000 + 1) for step in range(1, 1001)}
    with pytest.raises(CircularDependencyError, match=r"… 9[0-9]{2} more …") as caught:
        refuse_cycles(Shape(dict.fromkeys(range(1, 1001)), {}, ring), {})
    steps = str(caught.value.facts["path"]).split(" → ")
    assert len(steps) < 20
    assert steps[0] == steps[-1]


def test_an_edge_whose_end_no_one_holds_is_refused() -> None:
    first, second = make("first"), make("second")
    first >> second
    submission = Submission(1, tasks=[second], edges=list(first.outgoing))
    with pytest.raises(UnknownNode, match=f"task 'first' → task 'second' names task {first.id}"):
        refuse_unknown(submission, shape_of(submission), set())
    refuse_unknown(submission, shape_of(submission), {first.id})


# ---------------------------------------------------------------- large


def layered(size: int) -> list[Task]:
    """So many tasks in layers, with twice as many edges; a tenth of them in nested groups."""
    draw = random.Random(1)
    outer = Group("outer")
    inner = Group("inner", parent_group_id=outer.id)
    made = [make(group_id=inner.id if index % 10 == 0 else None) for index in range(size)]
    for index, task in enumerate(made):
        for previous in draw.sample(made[max(0, index - 1000) : index], min(index, 2)):
            if task.group_id is None:
                previous >> task
            else:
                made[index - 1] >> task
    return made


@pytest.mark.timeout(900)
@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mariadb"], indirect=True)
async def test_a_large_graph_is_built_checked_and_stored(band: Orchestra) -> None:
    size = 100_000 if LONG else 4_000
    made = layered(size)
    job = await band.submit(*made)
    assert job.total_tasks == await count(band, tasks) == size
    assert await count(band, dependencies) > 1.7 * size
    assert await count(band, groups) == 2
    assert await band.ready_names() == ["t"]
    assert all(node.applied for node in made)
    made[0] << made[-1]
    async with refused_at_any_size(band, CircularDependencyError):
        await band.apply(job, made[-1])


class refused_at_any_size:
    """As `refused`, for contents too large to compare row by row."""

    def __init__(self, band: Orchestra, kind: type[Exception]) -> None:
        self.band, self.kind = band, kind

    async def __aenter__(self) -> None:
        self.before = await self.counts()

    async def __aexit__(self, kind: object, error: object, trace: object) -> bool:
        assert isinstance(error, self.kind)
        assert await self.counts() == self.before
        return True

    async def counts(self) -> list[object]:
        summed = (func.count(), func.sum(tasks.c.unmet_count), func.sum(tasks.c.dependents_count))
        rows = await self.band.rows(select(*summed))
        return [*map(tuple, rows), await count(self.band, dependencies), await self.band.ready_names()]


@pytest.mark.timeout(900)
async def test_a_long_chain_runs_to_its_end(band: Orchestra, dialect: str) -> None:
    """Whatever walks it must not recurse (pitfall T26)."""
    length = 10_000 if LONG else {"sqlite": 1_100, "postgres": 1_100, "mariadb": 400}[dialect]  # MariaDB is slow at it
    assert length > sys.getrecursionlimit() or dialect == "mariadb"
    chain = [make() for _ in range(length)]
    for previous, following in pairwise(chain):
        previous >> following
    job = await band.submit(chain[-1])
    order = [claim.task_id for claim in await band.drain()]
    assert order == [task.id for task in chain]
    assert (await band.job(job)).status == JobStatus.COMPLETED
    assert await band.violations() == []


@pytest.mark.timeout(900)
async def test_a_wide_fan_out_and_fan_in_run_to_their_end(band: Orchestra, dialect: str) -> None:
    """Wider than what one transaction tells its dependents: the rest is told in steps."""
    width = 10_000 if LONG else 2_500
    source, sink = make("source"), make("sink")
    source >> [make("middle") for _ in range(width)] >> sink
    job = await band.submit(sink)
    order = [claim.name for claim in await band.drain(limit=500)]
    assert (order[0], order[-1], len(order)) == ("source", "sink", width + 2)
    assert (await band.job(job)).status == JobStatus.COMPLETED
    assert await band.violations() == []


async def test_a_chain_of_groups_inside_groups_runs_to_its_end(band: Orchestra) -> None:
    """Nested a hundred deep: completing the one task inside completes them all, in one go."""
    outermost = around = Group("outermost")
    for _ in range(100):
        around = Group("inner", parent_group_id=around.id)
    first, inside, last = make("first"), make("inside", group_id=around.id), make("last")
    first >> outermost >> last
    job = await band.submit(last, inside)
    assert [claim.name for claim in await band.drain()] == ["first", "inside", "last"]
    assert (await band.job(job)).status == JobStatus.COMPLETED
    assert await band.violations() == []


def test_a_cycle_among_tasks_of_one_name_is_told_with_their_ids() -> None:
    one, two = Task("m.same"), Task("m.same")
    one >> two >> one
    submission = gather(1, [one])
    with pytest.raises(CircularDependencyError) as refused:
        refuse_cycles(shape_of(submission), names_of(submission))
    assert f"({one.id})" in str(refused.value)
    assert f"({two.id})" in str(refused.value)
