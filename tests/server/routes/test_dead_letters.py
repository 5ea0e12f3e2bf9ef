"""Dead letters over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.orchestration import create_job, get_tasks_for_job
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.orchestration.models import Task
from tests.server.conftest import Client, problem_in


async def given_up(count: int = 1) -> list[Task]:
    job = await create_job("x", tasks=[{"entrypoint": "tests.server.outside_flows.fail"}] * count)
    await ajob_test(job)
    return await get_tasks_for_job(job.id)


async def test_what_was_given_up_is_listed_in_pages(each_client: Client) -> None:
    older, newer = await given_up(2), await given_up(1)
    await create_job("y", "tests.server.outside_flows.fail")
    expected = [str(task.id) for task in (*newer, *older[::-1])]
    whole = (await each_client.get("/dead-letters")).json()
    assert [task["id"] for task in whole["tasks"]] == expected
    first = (await each_client.get("/dead-letters", params={"limit": 2})).json()
    rest = (await each_client.get("/dead-letters", params={"limit": 2, "before": first["next"]})).json()
    assert [task["id"] for task in (*first["tasks"], *rest["tasks"])] == expected
    assert rest["next"] is None


async def test_of_two_who_replay_it_one_is_told(each_client: Client) -> None:
    (task,) = await given_up()
    path = f"/dead-letters/{task.id}/replay"
    answers = await asyncio.gather(each_client.post(path), each_client.post(path))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert (await each_client.get(f"/tasks/{task.id}")).json()["generation"] == 1
    assert (await each_client.get("/dead-letters")).json() == {"tasks": [], "next": None}


async def test_what_is_no_dead_letter(client: Client) -> None:
    problem_in(await client.post("/dead-letters/12345/replay"), 404)


@pytest.mark.parametrize("before", ["x", "1", "1-", "-1", "1-2-3", f"1-{2**63}", "0-1"])
async def test_a_page_that_is_none(client: Client, before: str) -> None:
    problem_in(await client.get("/dead-letters", params={"before": before}), 422)
