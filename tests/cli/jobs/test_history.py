"""`aaiclick job tasks|events`, `task runs`, `worker get`, `audit`: for people; what programs get is one view's."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.orchestration import ajob_test, create_job, create_task, get_tasks_for_job, register_worker
from aaiclick.orchestration.access.audit import audited
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.context import orch_context
from tests.cli.conftest import Cli

FLOWS = "tests.orchestration.sample_flows"


@pytest.fixture
def broken(root: object) -> tuple[str, str]:
    """A job whose only task has failed, and that task."""

    async def work() -> tuple[str, str]:
        async with orch_context():
            job = await ajob_test(await create_job("broken", create_task(f"{FLOWS}.fail", {"message": "no\x1b[31m"})))
            (task,) = await get_tasks_for_job(job.id)
            return str(job.id), str(task.id)

    return asyncio.run(work())


def test_the_tasks_of_a_job(cli: Cli, broken: tuple[str, str]) -> None:
    job, task = broken
    shown = cli("job", "tasks", job)
    header, row = (line.split("\t") for line in shown.out.splitlines())
    assert (header[:3], row[:3]) == (["id", "name", "status"], [task, "fail", "failed"])
    assert shown.err == "1 task\n"
    assert cli("job", "tasks", job, "--status", "completed").err == "no tasks\n"
    assert cli("job", "tasks", "12345").code == 3


def test_the_events_of_a_job_page_by_page(cli: Cli, broken: tuple[str, str]) -> None:
    job, _ = broken
    whole = cli("job", "events", job, "--json").data["events"]
    assert next(each["move"] for each in whole if each["task_id"] is None) == "create"
    first = cli("job", "events", job, "--limit", "2")
    assert first.err == f"2 events; there may be more: next is {whole[1]['id']}\n"
    rest = cli("job", "events", job, "--after", whole[1]["id"], "--json").data["events"]
    assert rest == whole[2:]


def test_the_attempts_at_a_task(cli: Cli, broken: tuple[str, str]) -> None:
    _, task = broken
    shown = cli("task", "runs", task)
    assert "ValueError: no\\x1b[31m" in shown.out
    assert "\x1b" not in shown.out
    assert shown.err == "1 run\n"


def test_a_worker(cli: Cli) -> None:
    worker = asyncio.run(register_worker(name="gpu box"))
    assert "gpu box" in cli("worker", "get", str(worker.id)).out
    assert cli("worker", "get", str(worker.id), "--json").data["id"] == str(worker.id)
    assert cli("worker", "get", "99999").code == 3


def test_what_was_changed_from_outside(cli: Cli) -> None:
    async def work() -> None:
        token = (await create_token("somebody", "operator")).token
        for number in range(3):
            async with audited(token, "cancel", f"job {number}"):
                pass

    asyncio.run(work())
    first = cli("audit", "--limit", "2", "--json").data
    assert [each["target"] for each in first["entries"]] == ["job 2", "job 1"]
    second = cli("audit", "--before", first["next"], "--json").data
    token = second["entries"].pop()
    assert ([each["target"] for each in second["entries"]], second["next"]) == (["job 0"], None)
    assert token["target"].startswith("token ")
    assert cli("audit").out.splitlines()[1].split("\t")[2:] == ["somebody", "cancel", "job 2", "done"]


def test_lists_go_on_where_the_page_before_ended(cli: Cli) -> None:
    async def work() -> list[str]:
        async with orch_context():
            return [str((await register_worker()).id) for _ in range(3)]

    made = asyncio.run(work())
    first = cli("worker", "list", "--limit", "2", "--json").data
    second = cli("worker", "list", "--limit", "2", "--before", first["next"], "--json").data
    assert [each["id"] for each in first["workers"] + second["workers"]] == made[::-1]
    assert second["next"] is None
