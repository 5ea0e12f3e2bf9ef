"""`aaiclick dlq`, `aaiclick task retry`"""

import asyncio

import pytest

from aaiclick.orchestration import create_job, create_task, get_tasks_for_job
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.orchestration.models import Task
from tests.cli.conftest import Cli
from tests.cli.jobs.test_task import submit

FAIL = "tests.server.outside_flows.fail"


def give_up(count: int = 1) -> list[Task]:
    """Tasks that failed."""

    async def work() -> list[Task]:
        job = await ajob_test(await create_job("x", tasks=[create_task(FAIL, name=f"t{n}") for n in range(count)]))
        return await get_tasks_for_job(job.id)

    return asyncio.run(work())


def test_list_and_replay(cli: Cli) -> None:
    assert cli("dlq", "list") == (0, "id\tjob_id\tname\tattempt\tcompleted_at\terror\n", "no dead letters\n")
    (task,) = give_up()
    listed = cli("dlq", "list")
    row = dict(zip(*(line.split("\t") for line in listed.out.splitlines()), strict=True))
    assert (row["id"], row["job_id"], row["name"]) == (str(task.id), str(task.job_id), "t0")
    assert row["error"]
    assert listed.err == "1 dead letter\n"
    data = cli("dlq", "list", "--json").data
    assert ([each["id"] for each in data["tasks"]], data["next"]) == ([str(task.id)], None)
    assert cli("dlq", "replay", str(task.id)[-9:]) == (0, f"{task.id}\n", "1 task will run again.\n")
    again = cli("dlq", "replay", str(task.id))
    assert (again.code, again.out) == (5, "")
    assert "it is pending" in again.err


def test_pages(cli: Cli) -> None:
    tasks = give_up(3)
    page = cli("dlq", "list", "--limit", "2", "--json").data
    rest = cli("dlq", "list", "--limit", "2", "--before", page["next"], "--json").data
    found = [each["id"] for each in page["tasks"] + rest["tasks"]]
    assert found == [str(task.id) for task in reversed(tasks)]
    assert rest["next"] is None
    assert f"--before {page['next']}" in cli("dlq", "list", "--limit", "2").err


def test_of_one_job(cli: Cli) -> None:
    (first,), (second,) = give_up(), give_up()
    found = cli("dlq", "list", "--job", str(first.job_id)[-10:], "--json").data["tasks"]
    assert [each["id"] for each in found] == [str(first.id)]
    assert len(cli("dlq", "list", "--json").data["tasks"]) == 2
    assert cli("dlq", "list", "--job", "12345").code == 3
    assert second.job_id != first.job_id


@pytest.mark.parametrize("options", [("--limit", "0"), ("--limit", "1001"), ("--before", "5"), ("--before", "a-b")])
def test_what_is_no_page(cli: Cli, options: tuple[str, str]) -> None:
    assert cli("dlq", "list", *options).code == 2


def test_retry_is_for_what_failed(cli: Cli) -> None:
    first, _ = submit()
    refused = cli("task", "retry", str(first.id))
    assert refused.code == 5
    assert "clear it instead" in refused.err
    (task,) = give_up()
    assert cli("task", "retry", str(task.id), "--json").data["task_ids"] == [str(task.id)]


@pytest.mark.parametrize("typed", [("dlq", "replay"), ("task", "retry")])
def test_what_is_not_there(cli: Cli, typed: tuple[str, ...]) -> None:
    assert cli(*typed, "12345").code == 3
    assert cli(*typed, "0").code == 2
