"""Tasks and their logs over HTTP."""

from __future__ import annotations

import asyncio
import os

import pytest

from aaiclick.backend import get_logs_dir
from aaiclick.orchestration import cancel_job, create_job, get_task, get_tasks_for_job
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.queries import log_following
from tests.server.conftest import Client, problem_in
from tests.server.outside_flows import chain, echo

FAIL = "tests.server.outside_flows.fail"


async def failed() -> Task:
    job = await create_job("x", FAIL)
    await ajob_test(job)
    (task,) = await get_tasks_for_job(job.id)
    return task


def write_log(task: Task, text: bytes, epoch: int | None = None) -> None:
    name = f"{task.id}.log" if epoch is None else f"{task.id}.{epoch}.log"
    with open(os.path.join(get_logs_dir(), name), "ab") as file:
        file.write(text)


async def test_a_task_is_shown_with_its_attempts(each_client: Client) -> None:
    task = await failed()
    shown = (await each_client.get(f"/tasks/{task.id}")).json()
    assert (shown["id"], shown["status"], shown["entrypoint"]) == (str(task.id), "failed", FAIL)
    assert "ValueError" in shown["error"]
    assert shown["arguments"] == {}
    (run,) = (await each_client.get(f"/tasks/{task.id}/runs")).json()["runs"]
    assert (run["outcome"], run["task_id"]) == ("failed", str(task.id))
    assert "ValueError" in run["traceback"]


@pytest.mark.parametrize("more", ["", "/runs", "/logs", "/pending"])
async def test_a_task_that_is_none(client: Client, more: str) -> None:
    problem_in(await client.get(f"/tasks/12345{more}"), 404)
    problem_in(await client.get(f"/tasks/9223372036854775808{more}"), 422)


async def test_why_a_task_does_not_run(each_client: Client) -> None:
    job = await chain.submit(x=1)
    first, second, _ = await get_tasks_for_job(job.id)
    found = (await each_client.get(f"/tasks/{second.id}/pending")).json()
    assert (found["task_id"], found["status"]) == (str(second.id), "pending")
    assert [each["id"] for each in found["waits_for"]] == [str(first.id)]
    assert found["line"]


async def test_clearing(each_client: Client) -> None:
    task = await failed()
    body = {"dry_run": True}
    assert (await each_client.post(f"/tasks/{task.id}/clear", json=body)).json()["task_ids"] == [str(task.id)]
    assert (await each_client.post(f"/tasks/{task.id}/clear")).json() == {"task_ids": [str(task.id)], "dry_run": False}
    cleared = await get_task(task.id)
    assert cleared is not None
    assert (cleared.status, cleared.generation) == ("pending", 1)
    problem_in(await each_client.post("/tasks/12345/clear"), 404)
    problem_in(await each_client.post(f"/tasks/{task.id}/clear", json={"dryrun": True}), 422)


async def test_logs(client: Client) -> None:
    job = await create_job("x", FAIL)
    (task,) = await get_tasks_for_job(job.id)
    hint = problem_in(await client.get(f"/tasks/{task.id}/logs"), 404)["detail"]
    assert "nothing yet" in hint
    write_log(task, b"newest <b>\xff\n")
    write_log(task, b"first\n", epoch=1)
    whole = await client.get(f"/tasks/{task.id}/logs")
    assert whole.content == b"newest <b>\xff\n"
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["x-log-size"] == "12"
    asked = {"epoch": 1, "offset": 2, "limit": 2}
    assert (await client.get(f"/tasks/{task.id}/logs", params=asked)).content == b"rs"
    assert (await client.get(f"/tasks/{task.id}/logs", params={"offset": -3})).content == b">\xff\n"
    assert (await client.get(f"/tasks/{task.id}/logs", params={"offset": 10**9})).content == b""
    problem_in(await client.get(f"/tasks/{task.id}/logs", params={"epoch": 2}), 404)
    problem_in(await client.get(f"/tasks/{task.id}/logs", params={"epoch": "../../x"}), 422)


async def test_a_link_that_was_planted_shows_no_other_file(client: Client) -> None:
    job = await create_job("x", FAIL)
    (task,) = await get_tasks_for_job(job.id)
    os.symlink("/etc/hostname", os.path.join(get_logs_dir(), f"{task.id}.log"))
    problem_in(await client.get(f"/tasks/{task.id}/logs"), 404)


async def test_following_a_log_until_the_task_ends(client: Client) -> None:
    job = await create_job("x", FAIL)
    (task,) = await get_tasks_for_job(job.id)
    write_log(task, b"one ")
    following = asyncio.create_task(client.get(f"/tasks/{task.id}/logs", params={"follow": True}))
    await asyncio.sleep(0)
    write_log(task, b"two")
    await client.post(f"/jobs/{job.id}/cancel")
    assert (await following).content == b"one two"


async def test_a_log_is_followed_from_one_attempt_to_the_next(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_following, "LOOK_EVERY_S", 0.001)
    job = await create_job("x", FAIL)
    (task,) = await get_tasks_for_job(job.id)
    parts = log_following.follow_log(task.id)

    async def heard() -> bytes:
        while not (part := await anext(parts, b"end")):
            pass
        return part

    async with connected():
        write_log(task, b"one")
        assert await heard() == b"one"
        write_log(task, b"two")
        assert await heard() == b"two"
        write_log(task, b"once more", epoch=2)
        place = get_logs_dir()
        os.replace(os.path.join(place, f"{task.id}.2.log"), os.path.join(place, f"{task.id}.log"))
        assert await heard() == b"once more"
        await cancel_job(job.id)
        assert await heard() == b"end"


async def test_following_a_task_that_never_wrote(client: Client) -> None:
    job = await create_job("x", FAIL)
    (task,) = await get_tasks_for_job(job.id)
    await client.post(f"/jobs/{job.id}/cancel")
    answer = await client.get(f"/tasks/{task.id}/logs", params={"follow": True})
    assert (answer.status_code, answer.content) == (200, b"")


async def test_a_task_tells_its_arguments(client: Client) -> None:
    job = await create_job("x", tasks=[echo(echo(5))])
    first, second = await get_tasks_for_job(job.id)
    told = [(await client.get(f"/tasks/{each.id}")).json()["arguments"] for each in (first, second)]
    assert told == [{"value": 5}, {"value": {"task_id": str(first.id)}}]
