"""Contexts: entered, nested, entered twice, used without entering, from threads and in several loops."""

import asyncio
import threading
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.errors import NoContext
from aaiclick.orchestration import (
    Context,
    Group,
    Job,
    Task,
    add_task_to_current_job,
    create_job,
    get_current_context,
    get_current_job_id,
    get_dependencies_for_job,
    get_groups_for_job,
    get_tasks_for_job,
)
from aaiclick.orchestration.connections import _open, connected, coordinated
from aaiclick.orchestration.context import orch_context
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.store.tables import tasks
from tests.support.front_door import local, state

__all__ = ["local", "state"]

pytestmark = pytest.mark.usefixtures("state")
SQLITE = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
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


async def test_inside_a_context_everything_shares_one_connection() -> None:
    assert _open.get() is None
    async with orch_context() as context:
        assert get_current_context() is context
        async with coordinated() as first, coordinated() as second:
            assert first is second
    assert _open.get() is None
    with pytest.raises(NoContext):
        get_current_context()


async def test_contexts_nest_and_come_back() -> None:
    one, other = await new_job(), await new_job()
    async with Context(one.id) as outer:
        async with coordinated() as around, Context(other.id) as inner:
            assert get_current_job_id() == other.id
            async with coordinated() as within:
                assert within is around
            assert get_current_context() is inner
        assert get_current_context() is outer
        assert get_current_job_id() == one.id
        await add_task_to_current_job(ENTRYPOINT, {"text": ""})
    assert await names_of(one) == ["first", "dedent"]


async def test_a_context_may_be_entered_inside_itself() -> None:
    job = await new_job()
    context = Context(job.id)
    async with context:
        async with coordinated() as outer:
            async with context:
                await context.apply(make("inner"))
            assert get_current_context() is context
            async with coordinated() as again:
                assert again is outer
        await context.apply(make("outer"))
    assert _open.get() is None, "the connection of the outer block was left open"
    assert await names_of(job) == ["first", "inner", "outer"]


async def test_a_context_may_be_entered_by_two_coroutines_at_once() -> None:
    job = await new_job()
    context = Context(job.id)
    entered, left = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with context:
            entered.set()
            await left.wait()
            await context.apply(make("of the first"))
        assert _open.get() is None

    async def second() -> None:
        await entered.wait()
        async with context:
            await context.apply(make("of the second"))
        assert _open.get() is None
        left.set()

    await asyncio.gather(first(), second())
    assert await names_of(job) == ["first", "of the second", "of the first"]


async def test_a_context_is_used_without_entering_and_after_leaving_it() -> None:
    job = await new_job()
    context = Context(job.id)
    await context.apply(make("before"))
    async with context:
        await context.apply(make("inside"))
    await context.apply(make("after"))
    async with context:
        await context.apply(make("again"))
    assert await names_of(job) == ["first", "before", "inside", "after", "again"]


async def test_a_context_that_is_left_by_an_error_is_closed() -> None:
    with pytest.raises(ZeroDivisionError):
        async with orch_context():
            _ = 1 / 0
    assert _open.get() is None
    with pytest.raises(NoContext):
        get_current_context()


@SQLITE
async def test_a_context_that_cannot_be_entered_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    job = await new_job()
    context = Context(job.id)
    with monkeypatch.context() as patch:
        patch.setattr("aaiclick.orchestration.connections.get_db_url", lambda: f"sqlite+aiosqlite:///{tmp_path}")
        with pytest.raises(Exception, match="not a file"):
            await context.__aenter__()
    assert _open.get() is None
    with pytest.raises(NoContext):
        get_current_context()
    async with context:
        await context.apply(make("later"))
    assert await names_of(job) == ["first", "later"]


# ---------------------------------------------------------------- threads and loops


def test_two_loops_one_after_the_other() -> None:
    job = asyncio.run(new_job())
    context = Context(job.id)
    first, second = make("early"), make("late")
    first >> second
    asyncio.run(in_context(context, first))
    asyncio.run(in_context(context, second))
    assert [task.name for task in job.tasks] == ["first"]
    assert asyncio.run(names_of(job)) == ["first", "early", "late"]
    assert asyncio.run(edges_of(job)) == {(first.id, second.id)}


async def in_context(context: Context, *items: Node) -> None:
    async with context:
        await context.apply(list(items))


def test_a_plain_thread_may_apply() -> None:
    job = asyncio.run(new_job())
    thread = threading.Thread(target=lambda: asyncio.run(in_context(Context(job.id), make("from the thread"))))
    thread.start()
    thread.join()
    assert asyncio.run(names_of(job)) == ["first", "from the thread"]


async def test_many_tasks_of_one_loop_apply_at_once() -> None:
    """Within one context they share a connection pool; each apply is a transaction of its own."""
    job = await new_job()
    async with Context(job.id) as context:
        group = Group("g")
        await context.apply(group)
        await asyncio.gather(*(context.apply(make(f"t{index}", group_id=group.id)) for index in range(12)))
        async with connected() as database:
            found = await database.read(lambda session: session.rows(select(tasks.c.id)))
    assert len(found) == 13
    stored = {found.name: found for found in await get_groups_for_job(job.id)}
    assert stored["g"].open_count == 12
