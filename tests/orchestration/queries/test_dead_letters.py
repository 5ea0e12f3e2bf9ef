"""Tasks that were given up."""

from __future__ import annotations

import pytest

from aaiclick.errors import Conflict, InputError, NotFound
from aaiclick.orchestration import create_job, create_task, get_task, get_tasks_for_job
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.orchestration.queries.dead_letters import list_dead_letters, replay_dead_letter
from tests.support.front_door import local, state

__all__ = ["local", "state"]

FAIL = "tests.server.outside_flows.fail"


async def test_a_task_of_a_job_that_completed_all_the_same_is_found(state: str) -> None:
    job = await ajob_test(await create_job("x", create_task(FAIL, critical=False)))
    assert job.status == "completed"
    assert [task.job_id for task in await list_dead_letters()] == [job.id]


async def test_those_of_one_job(state: str) -> None:
    jobs = [await ajob_test(await create_job("x", tasks=[create_task(FAIL), create_task(FAIL)])) for _ in range(2)]
    for job in jobs:
        first, second = await list_dead_letters(job_id=job.id)
        assert {first.job_id, second.job_id} == {job.id}
        assert [task.id for task in await list_dead_letters((job.id, first.id), job_id=job.id)] == [second.id]
    with pytest.raises(InputError, match="job id"):
        await list_dead_letters(job_id=0)


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_pages_go_on_over_many_jobs(state: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aaiclick.orchestration.store.reading.dead_letters.JOBS_AT_ONCE", 2)
    wanted = []
    for count in (1, 2, 1, 3, 1):
        job = await ajob_test(await create_job("x", tasks=[create_task(FAIL) for _ in range(count)]))
        wanted += [(job.id, task.id) for task in await get_tasks_for_job(job.id)]
    found: list[tuple[int, int]] = []
    while page := await list_dead_letters(found[-1] if found else None, size):
        found += [(task.job_id or 0, task.id) for task in page]
    assert found == sorted(wanted, reverse=True)


async def test_replaying_needs_one_that_was_given_up(state: str) -> None:
    job = await create_job("x", FAIL)
    (task,) = await get_tasks_for_job(job.id)
    with pytest.raises(Conflict, match="pending"):
        await replay_dead_letter(task.id)
    await ajob_test(job)
    assert await replay_dead_letter(task.id) == [task.id]
    again = await get_task(task.id)
    assert again is not None
    assert (again.status, again.generation) == ("pending", 1)
    with pytest.raises(Conflict, match="pending"):
        await replay_dead_letter(task.id)


async def test_what_is_refused(local: None) -> None:
    with pytest.raises(NotFound):
        await replay_dead_letter(12345)
    with pytest.raises(InputError):
        await replay_dead_letter(0)
    with pytest.raises(InputError):
        await list_dead_letters((0, 1))
