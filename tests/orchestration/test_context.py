"""What `apply` gathers, item by item or all at once, and what it refuses."""

import asyncio
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from aaiclick.data import data_context
from aaiclick.errors import (
    CircularDependencyError,
    CrossJobDependency,
    InputError,
    NoContext,
    NotFound,
    StaleObject,
    UnknownNode,
)
from aaiclick.orchestration import (
    Context,
    Group,
    Job,
    JobStatus,
    Task,
    ajob_test,
    create_job,
    create_task,
    get_current_job_id,
    get_dependencies_for_job,
    get_groups_for_job,
    get_job,
    get_task,
    get_tasks_for_job,
)
from aaiclick.orchestration.context import orch_context
from aaiclick.orchestration.models.node import Node
from tests.orchestration import data_flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

pytestmark = pytest.mark.usefixtures("state")
ENTRYPOINT = "textwrap.dedent"


def make(name: str = "t", **options: Any) -> Task:
    return Task(ENTRYPOINT, {"text": ""}, name=name, **options)


async def new_job() -> Job:
    """A job with one task, so that it waits."""
    return await create_job("job", tasks=[make("first")])


async def edges_of(job: Job) -> set[tuple[int, int]]:
    return {(edge.previous_id, edge.next_id) for edge in await get_dependencies_for_job(job.id)}


async def names_of(job: Job) -> list[str]:
    return [task.name for task in await get_tasks_for_job(job.id)]


# ---------------------------------------------------------------- apply, one by one


def nothing() -> None:
    """A body that does nothing."""


async def test_the_snippet_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    """«Context API for DAG Construction»."""
    myapp = ModuleType("myapp")
    myapp.func1 = myapp.func2 = nothing  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "myapp", myapp)
    job = await new_job()
    context = Context(job_id=job.id)
    task1, task2 = Task(entrypoint="myapp.func1", kwargs={}), Task(entrypoint="myapp.func2", kwargs={})
    group1 = Group(name="processing")
    task1 >> task2
    task2.group_id = group1.id
    assert await context.apply(task1) is task1
    assert await names_of(job) == ["first", "func1"]
    items: list[Node] = [task1, task2, group1]
    assert await context.apply(items) is items
    assert await names_of(job) == ["first", "func1", "func2"]
    assert await edges_of(job) == {(task1.id, task2.id)}
    stored = await get_task(task2.id)
    assert stored is not None
    assert (stored.group_id, stored.job_id) == (group1.id, job.id)


async def test_the_complex_graph_of_the_specification_item_by_item() -> None:
    source, extract, load, final = make("source"), Group("extract"), Group("load"), make("final")
    one, two = make("one"), make("two")
    with extract:
        make("extracting")
    with load:
        make("loading")
    source >> extract >> [one, two]
    [one, two] >> load >> final
    job = await new_job()
    context = Context(job_id=job.id)
    seen = []
    for item in (source, extract, one, two, load, final):
        await context.apply(item)
        seen.append((await get_job_again(job)).total_tasks)
    assert seen == [2, 3, 4, 5, 6, 7]
    assert len(await edges_of(job)) == 6
    finished = await ajob_test(job)
    assert finished.status == JobStatus.COMPLETED


async def get_job_again(job: Job) -> Job:
    found = await get_job(job.id)
    assert found is not None
    return found


async def test_an_edge_to_something_not_yet_applied_waits_with_it() -> None:
    job = await new_job()
    context = Context(job.id)
    first, second = make("early"), make("late")
    first >> second
    await context.apply(first)
    assert await edges_of(job) == set()
    assert not second.applied
    await context.apply(second)
    assert await edges_of(job) == {(first.id, second.id)}


async def test_what_is_waited_for_is_pulled_in_with_its_groups_and_their_members() -> None:
    job = await new_job()
    outer = Group("outer")
    with outer, Group("inner"):
        make("deep")
    make("member", group_id=outer.id)
    behind = make("behind")
    make("before") >> outer
    outer >> make("between") >> behind
    await Context(job.id).apply(behind)
    assert sorted(await names_of(job)) == ["before", "behind", "between", "deep", "first", "member"]
    assert {group.name for group in await get_groups_for_job(job.id)} == {"outer", "inner"}
    assert len(await edges_of(job)) == 3


async def test_what_waits_for_it_is_not_pulled_in() -> None:
    job = await new_job()
    first, second = make("early"), make("late")
    first >> second
    await Context(job.id).apply(first)
    assert await names_of(job) == ["first", "early"]


async def test_a_task_brings_the_group_it_is_in() -> None:
    job = await new_job()
    with Group("outer"), Group("inner") as inner:
        deep, beside = make("deep"), make("beside")
    await Context(job.id).apply(deep)
    assert inner.applied
    assert beside.applied


async def test_a_stored_group_brings_what_was_made_inside_since() -> None:
    job = await new_job()
    group = Group("g")
    await Context(job.id).apply(group)
    with group:
        late = make("late")
        inner = Group("inner")
    make("deep", group_id=inner.id)
    await Context(job.id).apply(group)
    assert late.applied
    assert sorted(await names_of(job)) == ["deep", "first", "late"]


@pytest.mark.parametrize("end", [0, 1])
async def test_an_edge_between_stored_nodes_goes_with_either_end(end: int) -> None:
    first, second = make("early"), make("late")
    job = await create_job("job", tasks=[first, second])
    first >> second
    await Context(job.id).apply([first, second][end])
    assert await edges_of(job) == {(first.id, second.id)}


async def test_applying_twice_changes_nothing() -> None:
    job = await new_job()
    first, second = make("early"), make("late")
    first >> second
    for _ in range(3):
        await Context(job.id).apply([second, first, second])
    assert (await get_job_again(job)).total_tasks == 3
    assert await edges_of(job) == {(first.id, second.id)}


async def test_applying_nothing_is_nothing_even_to_a_job_that_is_not_there() -> None:
    assert await Context(12345).apply([]) == []
    job = await new_job()
    task = await Context(job.id).apply(make())
    await ajob_test(job)
    assert await Context(job.id).apply(task) is task


async def test_whoever_waits_for_an_empty_group_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """It is satisfied at once, which may not be what was meant."""
    job = await new_job()
    group, after = Group("hollow"), make("after")
    group >> after
    with caplog.at_level(logging.WARNING, "aaiclick"):
        await Context(job.id).apply(after)
    assert "'hollow' is empty" in caplog.text
    stored = await get_task(after.id)
    assert stored is not None
    assert stored.unmet_count == 0


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize("wrong", [None, 1, "task", {"a"}, [make, 2], object()], ids=str)
async def test_apply_takes_tasks_and_groups(wrong: Any) -> None:
    with pytest.raises(TypeError, match="Tasks and Groups"):
        await Context(1).apply(wrong)


@pytest.mark.parametrize("wrong", [0, -1, 2**63, "7", 1.5, True], ids=repr)
def test_a_job_is_named_by_its_id(wrong: Any) -> None:
    with pytest.raises(InputError, match="job id"):
        Context(wrong)


async def test_without_a_job_there_is_nothing_to_apply_to() -> None:
    async with orch_context() as context:
        with pytest.raises(NoContext, match="job"):
            await context.apply(make())
        with pytest.raises(NoContext, match="not bound"):
            get_current_job_id()


async def test_a_job_that_is_not_there_is_said_so() -> None:
    task = make()
    with pytest.raises(NotFound, match="12345"):
        await Context(12345).apply(task)
    assert not task.applied
    assert task.job_id is None


async def test_a_node_belongs_to_one_job() -> None:
    one, other = await new_job(), await new_job()
    task = await Context(one.id).apply(make("mine"))
    for refused in (task, task >> make("behind"), make("before") >> task):
        with pytest.raises(CrossJobDependency, match="'mine'"):
            await Context(other.id).apply(refused)
    assert await names_of(other) == ["first"]


async def test_a_task_may_refer_to_a_stored_group_by_its_number_alone() -> None:
    with Group("g") as group:
        make("inside")
    job = await create_job("job", tasks=[group])
    number = group.id
    del group
    late = await Context(job.id).apply(make("late", group_id=number))
    stored = await get_task(late.id)
    assert stored is not None
    assert stored.group_id == number


async def test_a_group_that_was_let_go_before_it_was_stored_is_not_found() -> None:
    job = await new_job()
    late = make("late")
    late.group_id = Group("nobody holds it").id
    with pytest.raises(UnknownNode, match="which does not exist"):
        await Context(job.id).apply(late)
    late.group_id = None
    await Context(job.id).apply(late)
    assert await names_of(job) == ["first", "late"]


async def test_a_refusal_leaves_the_nodes_as_they_were_so_that_they_can_be_mended() -> None:
    job = await new_job()
    context = Context(job.id)
    one, other = Group("one"), Group("other")
    one.parent_group_id, other.parent_group_id = other.id, one.id
    inside = make("inside", group_id=one.id)
    with pytest.raises(CircularDependencyError, match="group 'one'"):
        await context.apply(inside)
    assert await names_of(job) == ["first"]
    assert await get_groups_for_job(job.id) == []
    assert not any(node.applied for node in (one, other, inside))
    other.parent_group_id = None
    await context.apply(inside)
    assert await names_of(job) == ["first", "inside"]


async def test_a_context_makes_objects_where_data_is_at_hand(local: Path) -> None:
    with pytest.raises(NoContext, match="data_context"):
        await Context().create_object({"a": int})
    async with data_context():
        made = await Context().create_object({"a": int}, order=True)
        assert made.schema.ordered


async def test_a_context_of_a_job_reaches_both_databases(local: Path) -> None:
    made = await create_job("job", tasks=[])
    context = Context(job_id=made.id)
    async with context, context:
        kept = await context.create_object({"a": int})
        others = await asyncio.gather(*(context.create_object({"a": int}) for _ in range(3)))
        await kept.insert([{"a": 1}, {"a": 2}])
        assert await kept.data() == {"a": [1, 2]}
        await context.apply(create_task(data_flows.read, {"rows": kept}))
    with pytest.raises(StaleObject):
        await others[0].data()
    async with context:  # again, and without data
        assert (await get_job(made.id)) is not None
    assert (await ajob_test(made)).status == "completed"
