"""`aaiclick task why`"""

import asyncio

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


def test_it_says_in_a_line_what_a_task_waits_for(cli: Cli) -> None:
    first, second = submit()
    assert cli("task", "why", str(second.id)) == (
        0,
        "second is pending: it waits for task 'first' (pending)\n",
        "",
    )
    assert "no worker is live" in cli("task", "why", str(first.id)).out


def test_as_json_with_ids_that_no_program_rounds(cli: Cli) -> None:
    first, second = submit()
    shown = cli("task", "why", str(second.id), "--json").data
    assert (shown["task_id"], shown["reason"], shown["more"]) == (str(second.id), "waits", 0)
    assert shown["waits_for"] == [
        {
            "id": str(first.id),
            "kind": "task",
            "name": "first",
            "status": "pending",
            "open_count": 0,
            "gate": None,
        }
    ]
    shown = cli("task", "why", str(first.id), "--json").data
    assert (shown["reason"], shown["before"], shown["live_workers"]) == ("no_worker", 0, 0)


def test_it_answers_the_same_on_every_database(cli: Cli, on_url, migrated_sql_url: str) -> None:
    on_url(migrated_sql_url)
    _, second = submit()
    assert cli("task", "why", str(second.id), "--json").data["reason"] == "waits"


def test_a_task_that_is_not_there(cli: Cli) -> None:
    missing = cli("task", "why", "12345")
    assert (missing.code, missing.out) == (3, "")
    assert missing.err.startswith("aaiclick: No task with id 12345.")


@pytest.mark.parametrize("text", ["0", "-1", "9223372036854775808", "1e3", ""])
def test_what_is_no_id_is_refused(cli: Cli, text: str) -> None:
    assert cli("task", "why", text).code == 2
