"""`aaiclick task`"""

import asyncio
import json

import pytest

from aaiclick.orchestration.factories import create_job, create_task
from aaiclick.orchestration.models import Task
from tests.cli.conftest import Cli


def work() -> None:
    """A task's body; none is run here."""


def submit() -> tuple[Task, Task]:
    first, second = (create_task(f"{__name__}.work", name=name) for name in ("first", "second"))
    first >> second
    asyncio.run(create_job("report", tasks=[first, second]))
    return first, second


def test_get(cli: Cli) -> None:
    first, _ = submit()
    facts = dict(line.split(maxsplit=1) for line in cli("task", "get", str(first.id)).out.splitlines() if "  " in line)
    assert (facts["id"], facts["name"], facts["status"]) == (str(first.id), "first", "pending")
    shown = cli("task", "get", str(first.id), "--json").data
    assert (shown["job_id"], shown["group_id"], shown["generation"]) == (str(first.job_id), None, 0)
    assert (shown["when"], shown["critical"], shown["timeout_s"], shown["lost_count"]) == (
        "all_completed",
        True,
        None,
        0,
    )


def test_get_shows_the_arguments(cli: Cli) -> None:
    first = create_task("statistics.mean", {"data": [1, 2]})
    second = create_task("statistics.mean", {"data": [first, 0.5]})
    asyncio.run(create_job("means", tasks=[second]))
    arguments = {"data": [{"task_id": str(first.id)}, 0.5]}
    assert cli("task", "get", str(second.id), "--json").data["arguments"] == arguments
    assert json.dumps(arguments) in cli("task", "get", str(second.id)).out


def test_clear_lists_what_runs_again(cli: Cli) -> None:
    first, second = submit()
    listed = f"{first.id}\n{second.id}\n"
    assert cli("task", "clear", str(first.id), "--dry-run") == (0, listed, "2 tasks would run again.\n")
    assert cli("task", "get", str(first.id), "--json").data["generation"] == 0
    assert cli("task", "clear", str(first.id)) == (0, listed, "2 tasks will run again.\n")
    assert cli("task", "clear", str(second.id)) == (0, f"{second.id}\n", "1 task will run again.\n")
    assert cli("task", "clear", str(first.id), "--json").data == {
        "task_ids": [str(first.id), str(second.id)],
        "cleared": [str(first.id), str(second.id)],
        "dry_run": False,
    }
    assert cli("task", "get", str(second.id), "--json").data["generation"] == 3


@pytest.mark.parametrize("verb", ["get", "clear"])
def test_a_task_that_is_not_there(cli: Cli, verb: str) -> None:
    missing = cli("task", verb, "12345")
    assert (missing.code, missing.out) == (3, "")
    assert missing.err.startswith("aaiclick: No task with id 12345.")


@pytest.mark.parametrize("verb", ["get", "clear"])
@pytest.mark.parametrize("text", ["0", "-1", "9223372036854775808", "1e3", "", "1_000"])
def test_what_is_no_id_is_refused(cli: Cli, verb: str, text: str) -> None:
    refused = cli("task", verb, text)
    assert (refused.code, refused.out) == (2, "")
