"""Asking about tasks, and adding them to jobs."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from aaiclick.errors import (
    Conflict,
    EntrypointError,
    InputError,
    JobEnded,
    NoContext,
    NotFound,
    SignatureMismatch,
    UnknownNode,
    ValueNotPortable,
)
from aaiclick.orchestration import (
    Context,
    Group,
    Task,
    add_task_to_current_job,
    add_task_to_job,
    ajob_test,
    cancel_job,
    clear_task,
    create_job,
    get_groups_for_job,
    get_job,
    get_runs_for_task,
    get_task,
    get_task_result,
    get_tasks_for_job,
    job,
)
from aaiclick.orchestration.store.connecting import connect
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

HERE = "tests.orchestration.sample_flows"


@pytest.mark.parametrize("wrong", [0, -1, 2**63, "5", 1.0, True, None], ids=repr)
async def test_an_id_that_is_none_is_refused(local: object, wrong: Any) -> None:
    for ask in (get_task, get_task_result, get_runs_for_task, clear_task):
        with pytest.raises(InputError, match="task id"):
            await ask(wrong)


async def test_an_id_that_no_one_holds_is_not_found(state: str) -> None:
    assert await get_task(5) is None
    assert await get_runs_for_task(5) == []
    with pytest.raises(NotFound, match="No task with id 5"):
        await get_task_result(5)


async def test_a_task_is_read_as_it_was_made(state: str) -> None:
    @job
    def one() -> None:
        flows.add.options(max_retries=2, timeout_s=5, priority=3, critical=False, name="größe")(1, 2)

    made = await one.submit()
    task = await get_task(made.tasks[0].id)
    assert task is not None
    assert (task.name, task.entrypoint, task.status, task.job_id) == ("größe", f"{HERE}.add", "pending", made.id)
    assert (task.max_retries, task.timeout_s, task.priority, task.critical) == (2, 5.0, 3, False)
    assert task.kwargs == {name: {"object_type": "pyobj", "value": n} for name, n in (("a", 1), ("b", 2))}
    assert (task.epoch, task.attempt, task.result, task.error) == (0, 0, None, None)
    assert task.created_at is not None


async def test_a_task_knows_its_older_names(state: str) -> None:
    finished = await ajob_test(flows.runs, "fail", message="oh")
    (task,) = finished.tasks
    assert (task.error_message, task.retry_count, task.description) == ("ValueError: oh", 1, "fail")
    assert task.run_epoch == task.epoch == 1
    async with connect(state, write=False) as connection:
        assert await connection.scalar(text(f"SELECT run_epoch FROM tasks WHERE id = {task.id}")) == 1
    assert task.result_table_id is None


@pytest.mark.parametrize("value", [None, 0, "", "text", [1, (2, {3})], {"object_type": "view"}, b"\0", 2**80, {1: 2}])
async def test_a_tasks_result_is_exactly_what_it_returned(local: object, value: object) -> None:
    finished = await ajob_test(flows.runs, "echo", value=value)
    result = await get_task_result(finished.tasks[0].id)
    assert result == value
    assert type(result) is type(value)


async def test_the_result_of_a_task_that_did_not_complete_says_why(state: str) -> None:
    waiting = await flows.single.submit(1)
    with pytest.raises(Conflict, match="it is pending"):
        await get_task_result(waiting.tasks[0].id)
    finished = await ajob_test(flows.runs, "fail", message="oh")
    with pytest.raises(Conflict, match=r"it is failed \(ValueError: oh\)"):
        await get_task_result(finished.tasks[0].id)


async def test_the_attempts_at_a_task_are_kept(state: str) -> None:
    @job
    def retried() -> None:
        flows.flaky.options(retry=flows.AT_ONCE)("attempts are kept" + state, 2)

    finished = await ajob_test(retried)
    runs = await get_runs_for_task(finished.tasks[0].id)
    assert [(run.attempt, run.outcome, run.error) for run in runs] == [
        (0, "failed", "RuntimeError: attempt 1"),
        (1, "failed", "RuntimeError: attempt 2"),
        (2, "completed", None),
    ]
    assert len({run.epoch for run in runs}) == 3
    assert "flaky" in str(runs[0].traceback)
    assert all(run.worker_id and run.claimed_at and run.ended_at for run in runs)


# ---------------------------------------------------------------- adding


async def test_a_task_is_added_to_a_job_that_waits(state: str) -> None:
    made = await create_job("later", tasks=[])
    task = await add_task_to_job(job_id=made.id, entrypoint=f"{HERE}.add", kwargs={"a": 1, "b": 2}, name="n")
    assert (task.job_id, task.name) == (made.id, "n")
    found = await get_job(made.id)
    assert found is not None
    assert found.total_tasks == 1
    finished = await ajob_test(found)
    assert finished.status == "completed"
    assert await get_task_result(task.id) == 3


async def test_a_cleared_task_runs_again_with_what_waits_for_it(state: str) -> None:
    finished = await ajob_test(flows.pipeline, x=3, y=4)
    stored = await get_tasks_for_job(finished.id)
    first = stored[0]
    would = await clear_task(first.id, dry_run=True)
    assert would[0] == first.id
    assert {one.status for one in await get_tasks_for_job(finished.id)} == {"completed"}
    assert await clear_task(first.id) == would
    found = {one.id: one for one in await get_tasks_for_job(finished.id)}
    assert {task for task, one in found.items() if one.status == "pending"} == set(would)
    assert (found[first.id].generation, found[first.id].result) == (1, None)
    again = await get_job(finished.id)
    assert again is not None
    assert (await ajob_test(again)).status == "completed"
    assert await get_task_result(first.id) is not None
    assert [run.outcome for run in await get_runs_for_task(first.id)] == ["completed", "completed"]


async def test_a_task_that_is_not_there_is_not_cleared(state: str) -> None:
    with pytest.raises(NotFound, match="No task with id 5"):
        await clear_task(5)


async def test_a_task_may_join_a_group_that_is_stored(state: str) -> None:
    made = await create_job("grouped", tasks=[Group("g"), flows.nothing()])
    (group,) = await get_groups_for_job(made.id)
    task = await add_task_to_job(made.id, f"{HERE}.nothing", group_id=group.id)
    stored = await get_task(task.id)
    assert stored is not None
    assert stored.group_id == group.id


async def test_nothing_is_added_to_a_job_that_ended(state: str) -> None:
    for ended in (await ajob_test(flows.single, 1), await flows.single.submit(1)):
        await cancel_job(ended.id)
        with pytest.raises(JobEnded, match="nothing can be added"):
            await add_task_to_job(ended.id, f"{HERE}.nothing")
        assert len(await get_tasks_for_job(ended.id)) == 1


@pytest.mark.parametrize("wrong", [0, -1, 2**63, "5", 1.0, True], ids=repr)
async def test_a_job_id_that_is_none_is_refused(local: object, wrong: Any) -> None:
    with pytest.raises(InputError, match="job id"):
        await add_task_to_job(wrong, f"{HERE}.nothing")
    async with Context(5):
        with pytest.raises(InputError, match="job id"):
            await add_task_to_current_job(f"{HERE}.nothing", job_id=wrong)


@pytest.mark.parametrize(
    ("entrypoint", "kwargs", "kind"),
    [
        (f"{HERE}.add", {"a": 1}, SignatureMismatch),
        (f"{HERE}.no_such", {}, EntrypointError),
        ("os.system", {"command": "true"}, EntrypointError),
        (f"{HERE}.single", {}, EntrypointError),
        (f"{HERE}.echo", {"value": object()}, ValueNotPortable),
        (f"{HERE}.echo", [1], InputError),
    ],
)
async def test_a_task_that_cannot_run_is_not_added(
    state: str, entrypoint: str, kwargs: Any, kind: type[Exception]
) -> None:
    made = await create_job("later", tasks=[])
    with pytest.raises(kind):
        await add_task_to_job(made.id, entrypoint, kwargs)
    assert await get_tasks_for_job(made.id) == []


async def test_a_task_for_an_unknown_job_or_group_is_refused(state: str) -> None:
    with pytest.raises(NotFound, match="No job with id 5"):
        await add_task_to_job(5, f"{HERE}.nothing")
    made = await create_job("later", tasks=[])
    with pytest.raises(UnknownNode, match="group 5"):
        await add_task_to_job(made.id, f"{HERE}.nothing", group_id=5)
    assert await get_tasks_for_job(made.id) == []


async def test_the_current_job_is_the_contexts(state: str) -> None:
    made = await create_job("later", tasks=[])
    async with Context(job_id=made.id):
        task = await add_task_to_current_job(entrypoint=f"{HERE}.nothing", kwargs={})
    assert task.job_id == made.id
    with pytest.raises(NoContext, match="orch_context"):
        await add_task_to_current_job(f"{HERE}.nothing")
    other = await add_task_to_current_job(f"{HERE}.nothing", job_id=made.id)
    assert other.job_id == made.id


# ---------------------------------------------------------------- groups from the database


async def test_a_stored_group_lists_what_is_inside(state: str) -> None:
    with Group("outer") as outer:
        flows.nothing()
        with Group("inner"):
            flows.nothing()
    made = await create_job("grouped", tasks=[outer])
    stored = {group.name: group for group in await get_groups_for_job(made.id)}
    assert [task.name for task in stored["outer"].tasks] == ["nothing"]
    assert [group.name for group in stored["outer"].child_groups] == ["inner"]
    assert stored["inner"].child_groups == []
    assert stored["inner"].parent_group_id == stored["outer"].id
    assert all(isinstance(task, Task) for task in stored["inner"].tasks)
