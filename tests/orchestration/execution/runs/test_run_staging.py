"""What a body makes: it becomes part of the report, or nothing of it is ever seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration import (
    Group,
    Job,
    Task,
    ajob_test,
    as_task,
    clear_task,
    create_job,
    get_job,
    get_task_result,
)
from aaiclick.orchestration.context import Context
from aaiclick.orchestration.execution.runs.run_staging import completed, new_staging
from aaiclick.orchestration.gathering import staged_in, staging_around
from aaiclick.orchestration.models import Claim, Done, Failure
from tests.orchestration import growing_flows as flows
from tests.support.front_door import local

__all__ = ["local"]

CLAIM = Claim(7, 3, 1, 9, None, "parent", "a.f", "{}", 0, None)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AAICLICK_TASK_CHILDREN_MAX", "5")
    reset_settings()
    yield
    monkeypatch.undo()
    reset_settings()


async def ran(entry: Any, **options: Any) -> Job:
    return await ajob_test(await create_job("job", entry, **options))


def names(ended: Job) -> list[str]:
    return sorted(task.name for task in ended.tasks)


# ---------------------------------------------------------------- reports


def test_a_body_that_makes_nothing_reports_no_children() -> None:
    report = completed(CLAIM, 5, new_staging(CLAIM))
    assert isinstance(report, Done)
    assert report.children is None


def test_what_is_made_is_reported_with_what_is_returned_of_it() -> None:
    staging = new_staging(CLAIM)
    with staged_in(staging):
        first = flows.square(x=1)
        second = flows.square(x=first)
    assert staging_around() is None
    report = completed(CLAIM, [second], staging)
    assert isinstance(report, Done)
    assert report.children is not None
    one, two = as_task(first).id, as_task(second).id
    assert [new.id for new in report.children.tasks] == [one, two]
    assert [tuple(edge) for edge in report.children.edges] == [(one, "task", two, "task")]
    assert report.children.returned == [("task", two)]


def test_children_join_the_group_of_their_parent_unless_told_otherwise() -> None:
    claim = Claim(7, 3, 1, 9, 44, "parent", "a.f", "{}", 0, None)
    staging = new_staging(claim)
    with staged_in(staging):
        alone = flows.square(x=1)
        with Group("own") as own:
            inside = flows.square(x=2)
    report = completed(claim, None, staging)
    assert isinstance(report, Done)
    assert report.children is not None
    assert {new.id: new.group_id for new in report.children.tasks} == {
        as_task(alone).id: 44,
        as_task(inside).id: own.id,
    }
    assert [new.parent_group_id for new in report.children.groups] == [44]


@pytest.mark.parametrize("itself", ["task", "group"])
def test_a_task_cannot_return_itself_or_the_group_it_is_in(itself: str) -> None:
    claim = Claim(7, 3, 1, 9, 44, "parent", "a.f", "{}", 0, None)
    node: Any = Task.__new__(Task) if itself == "task" else Group.__new__(Group)
    node._restore()
    node.id, node.name, node.job_id, node._group_id = 7 if itself == "task" else 44, "x", 9, None
    report = completed(claim, node, new_staging(claim))
    assert isinstance(report, Failure)
    assert report.permanent
    assert "cannot return itself" in report.error


def test_a_returned_task_cannot_take_the_result_of_the_task_that_returns_it() -> None:
    claim = Claim(7, 3, 1, 9, None, "parent", "a.f", "{}", 0, None)
    parent: Any = Task.__new__(Task)
    parent._restore()
    parent.id, parent.name, parent.job_id, parent._group_id = 7, "parent", 9, None
    staging = new_staging(claim)
    with staged_in(staging):
        child = flows.square(x=parent)
    report = completed(claim, child, staging)
    assert isinstance(report, Failure)
    assert report.permanent
    assert "would be its own" in report.error


# ---------------------------------------------------------------- bodies


async def test_whatever_is_made_and_applied_is_run(local: Path) -> None:
    ended = await ran(flows.applies(n=4))
    assert ended.status == "completed", ended.error
    assert names(ended) == ["added", "applies", "function", "second", "square"]


async def test_a_context_of_the_same_job_is_staged_too(local: Path) -> None:
    made = await create_job("job", tasks=[])
    await made_by_id(made)
    ended = await ajob_test(made)
    assert names(ended) == ["applies_by_id", "square"]


async def made_by_id(made: Job) -> None:
    await Context(made.id).apply(flows.applies_by_id(job_id=made.id))


async def test_a_body_cannot_wait_for_what_it_makes(local: Path) -> None:
    ended = await ran(flows.awaits_its_child())
    assert ended.status == "failed"
    assert "begins when that task has completed" in (ended.error or "")
    assert names(ended) == ["awaits_its_child"]


async def test_a_retried_parent_leaves_one_set(local: Path, tmp_path: Path) -> None:
    ended = await ran(flows.fails_once(place=str(tmp_path / "marker")))
    assert ended.status == "completed", ended.error
    assert names(ended) == ["fails_once", "square", "square"]


async def test_too_many_are_refused_where_they_are_made(local: Path, few: None) -> None:
    ended = await ran(flows.too_many())
    assert ended.status == "failed"
    assert "AAICLICK_TASK_CHILDREN_MAX" in (ended.error or "")
    assert names(ended) == ["too_many"]


@pytest.mark.parametrize(
    ("entry", "said"), [(flows.not_importable, "no_such_module"), (flows.wrong_arguments, "unexpected: 'y'")]
)
async def test_what_could_not_be_run_fails_the_parent_at_once(local: Path, entry: Any, said: str) -> None:
    ended = await ran(entry())
    assert ended.status == "failed"
    assert said in (ended.error or "")
    assert len(ended.tasks) == 1


async def test_another_job_that_a_body_submits_is_a_job_of_its_own(local: Path) -> None:
    for entry in (flows.submits_another(), flows.starts_a_workflow(n=2)):
        ended = await ran(entry)
        assert ended.status == "completed", ended.error
        assert len(ended.tasks) == 1
        other = await get_job(await get_task_result(ended.tasks[0].id))
        assert other is not None
        assert (other.status, other.total_tasks) == ("pending", 1)


async def test_an_object_lives_for_the_child_that_is_to_get_it(local: Path) -> None:
    ended = await ran(flows.hands_on_an_object())
    assert ended.status == "completed", ended.error
    assert await get_task_result(ended.tasks[0].id) == 3


# ---------------------------------------------------------------- what a process keeps from run to run


async def result_of_same(ended: Job) -> Any:
    (task,) = [task for task in ended.tasks if task.name == "same"]
    return await get_task_result(task.id)


async def test_a_task_that_was_kept_from_an_earlier_run_is_the_one_that_is_stored(local: Path) -> None:
    flows.KEPT.clear()
    first, second = flows.keeps(n=3), flows.keeps(n=4)
    ended = await ran(flows.same(x=[first, first >> second]))
    assert ended.status == "completed", ended.error
    assert await result_of_same(ended) == [9, 9]
    other = await ran(flows.keeps(n=5))
    assert other.status == "failed"
    assert f"belongs to job {ended.id}" in (other.error or "")


async def test_a_group_whose_id_was_handed_on_is_joined_although_the_process_still_has_it(local: Path) -> None:
    ended = await ran(flows.same(x=flows.opens_a_group()))
    assert ended.status == "completed", ended.error
    assert await result_of_same(ended) == [4, 25]


async def test_a_group_of_the_module_gets_nothing_of_a_run_that_failed(local: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "marker")
    flows.SHARED[place] = Group("shared")
    ended = await ran(flows.fills_a_shared_group(place=place))
    assert ended.status == "completed", ended.error
    assert names(ended) == ["fills_a_shared_group", "square"]


def test_what_a_run_made_that_failed_is_not_added_by_another() -> None:
    staging = new_staging(CLAIM)
    with suppress(ValueError), staged_in(staging):
        lost = flows.square(x=1)
        raise ValueError
    again = new_staging(CLAIM)
    with staged_in(again):
        made = flows.square(x=lost)
    report = completed(CLAIM, made, again)
    assert isinstance(report, Done)
    assert report.children is not None
    assert [new.id for new in report.children.tasks] == [as_task(made).id]


async def test_who_was_given_a_task_that_is_removed_is_told_so(local: Path) -> None:
    """Its argument would be None, which is a result too."""
    ended = await ran(flows.one(x=3))
    parent, child = ended.tasks
    await clear_task(child.id)
    await Context(ended.id).apply(flows.same(x=child))
    await clear_task(parent.id)
    again = await ajob_test(ended)
    assert {task.name: task.status.value for task in again.tasks} == {
        "one": "completed",
        "same": "failed",
        "square": "completed",
    }
    assert f"No task with id {child.id}" in (again.error or "")
