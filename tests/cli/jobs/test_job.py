"""`aaiclick job`"""

import asyncio
import importlib
import sys
from decimal import Decimal
from pathlib import Path

import pytest

import aaiclick.cli.jobs.job as job_commands
from aaiclick.backend import get_db_url, get_logs_dir
from aaiclick.orchestration.factories import create_job
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.orchestration.models import Job
from tests.cli.conftest import Cli
from tests.migrations.pictures import run
from tests.server import outside_flows


def work() -> None:
    """A task's body; none is run here."""


def submit(name: str, count: int = 1) -> Job:
    tasks = [{"entrypoint": f"{__name__}.work", "name": f"part {number}"} for number in range(count)]
    return asyncio.run(create_job(name, tasks=tasks))


def test_list_shows_the_newest_first_in_lines_with_tabs(cli: Cli) -> None:
    first, second = submit("first"), submit("second", 3)
    listed = cli("job", "list")
    header, *rows = [line.split("\t") for line in listed.out.splitlines()]
    told = ["id", "name", "status", "tasks", "created", "seconds", "scheduled", "backfill", "arguments"]
    assert header == told
    assert [row[:4] for row in rows] == [
        [str(second.id), "second", "pending", "0/3"],
        [str(first.id), "first", "pending", "0/1"],
    ]
    assert listed.err == "2 of 2 jobs\n"


def test_list_as_json_has_ids_that_no_program_rounds(cli: Cli) -> None:
    job = submit("report")
    listed = cli("job", "list", "--json")
    assert listed.data["total"] == 1
    assert listed.data["jobs"][0]["id"] == str(job.id)
    assert listed.data["jobs"][0]["created_at"].endswith("Z")
    assert listed.err == ""


def test_list_filters_and_pages(cli: Cli) -> None:
    for name in ("etl a", "etl b", "report"):
        submit(name)
    cli("job", "cancel", cli("job", "list", "--like", "report", "--json").data["jobs"][0]["id"])

    def names(*options: str) -> list[str]:
        return [job["name"] for job in cli("job", "list", "--json", *options).data["jobs"]]

    assert names("--like", "etl%") == ["etl b", "etl a"]
    assert names("--status", "CANCELLED") == ["report"]
    assert names("--limit", "1", "--offset", "1") == ["etl b"]
    assert names("--like", "%'; DROP TABLE jobs; --") == []
    assert cli("job", "list", "--like", "etl%", "--limit", "1", "--json").data["total"] == 2


def test_no_jobs(cli: Cli) -> None:
    assert cli("job", "list").err == "no jobs\n"
    assert cli("job", "list", "--json").data == {"jobs": [], "next": None, "total": 0}


def test_get(cli: Cli) -> None:
    job = submit("report", 2)
    facts = dict(line.split(maxsplit=1) for line in cli("job", "get", str(job.id)).out.splitlines() if " " in line)
    assert (facts["id"], facts["name"], facts["status"], facts["total_tasks"]) == (
        str(job.id),
        "report",
        "pending",
        "2",
    )
    assert cli("job", "get", str(job.id), "--json").data["name"] == "report"


def test_cancel_and_cancel_again(cli: Cli) -> None:
    job = submit("report")
    assert cli("job", "cancel", str(job.id)) == (0, "", f"Job {job.id} is cancelled.\n")
    assert cli("job", "cancel", str(job.id)) == (0, "", f"Job {job.id} was cancelled already.\n")
    again = cli("job", "cancel", str(job.id), "--json").data
    assert (again["cancelled"], again["job"]["status"]) == (False, "cancelled")


def test_cancelling_a_job_that_has_ended_is_a_conflict(cli: Cli) -> None:
    job = submit("report")
    asyncio.run(run(get_db_url(), "UPDATE jobs SET status = 'completed'"))
    refused = cli("job", "cancel", str(job.id))
    assert (refused.code, refused.out) == (5, "")
    assert "it is completed already" in refused.err


def test_stats(cli: Cli) -> None:
    job = submit("report", 2)
    assert "tasks 0/2 completed" in cli("job", "stats", str(job.id)).out
    numbers = cli("job", "stats", str(job.id), "--json").data
    assert (numbers["job_id"], numbers["by_status"]) == (str(job.id), {"pending": 2})


def test_retry_lists_what_runs_again(cli: Cli) -> None:
    job = submit("report", 2)
    nothing = cli("job", "retry", str(job.id))
    assert nothing == (0, "", "No tasks will run again.\n")
    asyncio.run(run(get_db_url(), "UPDATE tasks SET status = 'failed' WHERE name = 'part 1'"))
    asyncio.run(run(get_db_url(), "DELETE FROM ready"))
    (task,) = cli("job", "retry", str(job.id), "--dry-run", "--json").data["task_ids"]
    assert cli("job", "retry", str(job.id), "--dry-run") == (0, f"{task}\n", "1 task would run again.\n")
    assert cli("job", "retry", str(job.id)) == (0, f"{task}\n", "1 task will run again.\n")
    assert cli("job", "retry", str(job.id), "--json").data == {"task_ids": [], "cleared": [], "dry_run": False}


@pytest.mark.parametrize("verb", ["get", "cancel", "stats", "retry"])
def test_a_job_that_is_not_there(cli: Cli, verb: str) -> None:
    missing = cli("job", verb, "12345")
    assert (missing.code, missing.out) == (3, "")
    assert missing.err.startswith("aaiclick: No job with id 12345.")


@pytest.mark.parametrize("verb", ["get", "cancel", "stats", "retry"])
@pytest.mark.parametrize("text", ["0", "-1", "9223372036854775808", "1e3", "0x10", "1.5", "", "٣", "1" * 5000, "1_000"])
def test_what_is_no_id_is_refused(cli: Cli, verb: str, text: str) -> None:
    refused = cli("job", verb, text)
    assert (refused.code, refused.out) == (2, "")
    assert len(refused.err.splitlines()) == 1
    assert len(refused.err) < 300


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--status", "RUNNIG"], "Did you mean running?"),
        (["--limit", "-1"], "limit"),
        (["--limit", "1000000000"], "limit"),
        (["--limit", "many"], "limit"),
        (["--offset", "-5"], "offset"),
        (["--offset", str(10**30)], "offset"),
    ],
)
def test_filters_that_mean_nothing_are_refused(cli: Cli, options: list[str], said: str) -> None:
    refused = cli("job", "list", *options)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


def test_it_answers_the_same_on_every_database(cli: Cli, on_url, migrated_sql_url: str) -> None:
    on_url(migrated_sql_url)
    job = submit("café 日本", 2)
    listed = cli("job", "list", "--json").data
    assert [(each["name"], each["total_tasks"]) for each in listed["jobs"]] == [("café 日本", 2)]
    assert cli("job", "cancel", str(job.id)).code == 0
    assert cli("job", "stats", str(job.id), "--json").data["by_status"] == {"cancelled": 2}


def ran(body: str, **kwargs: object) -> Job:
    """A job of one task that has ended."""

    async def work() -> Job:
        return await ajob_test(await create_job(body, f"tests.orchestration.sample_flows.{body}", kwargs=kwargs))

    return asyncio.run(work())


def test_where_the_error_is(cli: Cli) -> None:
    job = asyncio.run(_failed())
    shown = cli("job", "get", str(job.id))
    assert "Traceback (most recent call last)" in shown.out
    assert "ValueError: no" in shown.out.splitlines()[-1]
    (error,) = cli("job", "get", str(job.id), "--json").data["errors"]
    task = cli("task", "get", error["task_id"], "--json").data
    assert task["traceback"] == error["traceback"]
    assert "Traceback" in cli("task", "get", error["task_id"]).out
    for logs in (("task", "logs", error["task_id"]), ("job", "logs", str(job.id), "--failed")):
        assert cli(*logs).out.endswith(error["traceback"])


def test_logs_that_are_elsewhere_leave_the_traceback(cli: Cli) -> None:
    job = asyncio.run(_failed())
    for log in Path(get_logs_dir()).iterdir():
        log.unlink()
    assert "Traceback" in cli("job", "logs", str(job.id), "--failed").out
    (error,) = cli("job", "get", str(job.id), "--json").data["errors"]
    assert cli("task", "logs", error["task_id"]).out == error["traceback"]
    assert cli("task", "logs", error["task_id"], "--json").data["text"] == error["traceback"]


async def _failed() -> Job:
    return await ajob_test(await create_job("bad", outside_flows.fail()))


def test_what_a_job_was_called_with_and_what_it_returned(cli: Cli) -> None:
    job = ran("add", a=1, b=2)
    shown = cli("job", "get", str(job.id), "--result", "--json").data
    assert (shown["arguments"], shown["result"], shown["result_complete"]) == ({"a": 1, "b": 2}, 3, True)
    text = cli("job", "get", str(job.id), "--result").out
    assert '{"a": 1, "b": 2}' in text
    assert cli("job", "list").out.splitlines()[1].endswith("a=1, b=2")
    waits = submit("waits")
    assert cli("job", "get", str(waits.id), "--result").code != 0


MODULE = """
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from aaiclick.orchestration import job, task


class Quality(Enum):
    GOOD = "good"


@dataclass
class Report:
    total: Decimal
    quality: Quality = Quality.GOOD


@task
def make(report: Report) -> Report:
    return report


@job
def daily(report: Report) -> Report:
    return make(report)
"""


def test_values_of_classes_that_the_command_cannot_import(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "flows_of_somebody_else"
    (tmp_path / f"{name}.py").write_text(MODULE)
    with monkeypatch.context() as there:
        there.syspath_prepend(tmp_path)
        flows = importlib.import_module(name)
        job = asyncio.run(ajob_test(flows.daily, flows.Report(Decimal("9.90"))))
    monkeypatch.delitem(sys.modules, name)
    facts = cli("job", "get", str(job.id), "--result", "--json").data
    report = {"total": "9.90", "quality": "good"}
    assert (facts["result"], facts["arguments"]) == (report, {"report": report})
    assert name not in sys.modules


def test_arguments_are_cut_on_a_terminal_and_nowhere_else(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ran("add", a=10**20, b=10**50)
    whole = f"a={10**20}, b={10**50}"
    assert cli("job", "list").out.splitlines()[1].endswith(whole)
    monkeypatch.setattr(job_commands, "is_terminal", lambda: True)
    assert job_commands.to_row(cli("job", "list", "--json").data["jobs"][0])[-1] == f"{whole[:59]}…"
