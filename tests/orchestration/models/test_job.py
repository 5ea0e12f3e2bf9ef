"""Jobs in memory: their fields are their columns, and their tasks and groups can be read from anywhere."""

import asyncio
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

from aaiclick.errors import Conflict
from aaiclick.orchestration import Context, create_job, get_groups_for_job, get_job
from aaiclick.orchestration.models import Group, Job, JobStatus, PreservationMode, RunType, Task
from aaiclick.orchestration.store.tables import jobs
from tests.support.front_door import local, state

__all__ = ["local", "state"]

ENTRYPOINT = "textwrap.dedent"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

# How a job calls what its row calls otherwise, and what it keeps in memory only.
RENAMED = {"result": "result_json"}
IN_MEMORY_ONLY = {"_tasks", "_groups", "needs"}


class Row:
    """A row as SQLAlchemy gives it."""

    def __init__(self, **facts: Any) -> None:
        self._mapping = facts


def make(name: str, **options: Any) -> Task:
    return Task(ENTRYPOINT, {"text": f"  {name}"}, name=name, **options)


# ---------------------------------------------------------------- fields


def test_a_job_and_its_row_have_the_same_fields() -> None:
    columns = {RENAMED.get(column.name, column.name) for column in jobs.columns}
    assert {field.name for field in fields(Job)} - IN_MEMORY_ONLY == columns


def test_a_job_that_is_read_has_every_column() -> None:
    facts: dict[str, Any] = {column.name: f"the {column.name}" for column in jobs.columns}
    facts |= {"status": "running", "run_type": "scheduled", "preservation_mode": "full", "created_at": NOW}
    facts |= {"arguments": None, "cache_mode": "off"}
    read = Job.from_row(Row(**facts))
    seen = {column: getattr(read, RENAMED.get(column, column)) for column in facts}
    assert seen == facts
    assert (read.status, read.run_type) == (JobStatus.RUNNING, RunType.SCHEDULED)
    assert read.preservation_mode is PreservationMode.FULL


def test_a_new_job_waits_and_has_counted_nothing() -> None:
    job = Job(id=1, name="load")
    assert (job.status, job.total_tasks, job.completed_tasks) == (JobStatus.PENDING, 0, 0)
    assert job.description == "load"
    assert job != Job(id=1, name="load"), "two copies may differ in what they know"


# ---------------------------------------------------------------- what belongs to it


async def small_job() -> Job:
    with Group("outer"):
        first = make("first")
        with Group("inner"):
            second = make("second")
    return await create_job("job", tasks=[first, second])


def names(nodes: list[Any]) -> list[str]:
    return [node.name for node in nodes]


def check_all(job: Job) -> None:
    """Everything that a job and its groups hold, read without awaiting."""
    assert names(job.tasks) == ["first", "second"]
    assert names(job.groups) == ["outer", "inner"]
    outer, inner = job.groups
    assert names(outer.tasks) == ["first"]
    assert names(outer.child_groups) == ["inner"]
    assert names(inner.tasks) == ["second"]
    assert inner.child_groups == []
    assert job.tasks is job.tasks, "read once"
    assert names([inner.parent_group, job.tasks[1].group, job.tasks[0].group]) == ["outer", "inner", "outer"]
    assert outer.parent_group is None
    for node in (*job.tasks, *job.groups):
        assert node.job is not None
        assert node.job.id == job.id
    with pytest.raises(Conflict, match="pending"):
        _ = job.result


async def read_again(job: Job) -> Job:
    found = await get_job(job.id)
    assert found is not None
    return found


async def test_they_are_read_inside_a_running_loop(state: str) -> None:
    job = await small_job()
    check_all(job)
    check_all(await read_again(job))


async def test_and_inside_a_context(state: str) -> None:
    async with Context():
        job = await small_job()
        check_all(await read_again(job))


def test_and_where_no_loop_runs(state: str) -> None:
    job = asyncio.run(small_job())
    check_all(job)
    check_all(asyncio.run(read_again(job)))


def test_what_is_not_applied_has_no_job() -> None:
    assert make("t").job is None
    assert make("t").group is None
    assert Group("g").job is None


async def test_a_group_that_was_read_shows_what_is_stored_and_what_will_be(state: str) -> None:
    job = await small_job()
    outer = (await get_groups_for_job(job.id))[0]
    with outer:
        make("new")
        Group("newest")
    assert names(outer.tasks) == ["first", "new"]
    assert names(outer.child_groups) == ["inner", "newest"]
    await Context(job.id).apply(outer)
    assert names(outer.tasks) == ["first", "new"]
    assert names(outer.child_groups) == ["inner", "newest"]


async def test_a_group_that_was_stored_empty_shows_what_others_put_into_it(state: str) -> None:
    group = Group("g")
    job = await create_job("job", tasks=[make("first"), group])
    assert group.tasks == []
    assert group.child_groups == []
    copy = (await get_groups_for_job(job.id))[0]
    with copy:
        theirs = make("theirs")
    await Context(job.id).apply(theirs)
    assert names(group.tasks) == ["theirs"]


def test_a_job_is_tested_where_it_stands(state: str) -> None:
    finished = asyncio.run(small_job()).test()
    assert finished.status == JobStatus.COMPLETED
    assert finished.completed_tasks == finished.total_tasks == 2
    assert finished.result is None


def test_jobs_compare_by_identity_and_show_themselves() -> None:
    one = Job(id=1, name="x")
    assert one != Job(id=1, name="x")
    assert "id=1" in repr(one)
