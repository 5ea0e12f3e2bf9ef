"""Waiting for a job: `aaiclick job wait`."""

import asyncio
import sys

import pytest

from aaiclick.backend import get_db_url
from aaiclick.cli.jobs import progress
from aaiclick.orchestration import cancel_job, job_test, task
from aaiclick.orchestration import job as workflow
from tests.cli.conftest import Cli
from tests.cli.jobs.test_job import submit
from tests.cli.test_output import Terminal
from tests.migrations.pictures import run


@task
def fine() -> int:
    return 1


@workflow
def one():
    return fine()


def test_the_outcome_is_the_exit_code(cli: Cli) -> None:
    done = job_test(one)
    waited = cli("job", "wait", str(done.id), "--json")
    assert (waited.code, waited.data["status"]) == (0, "completed")
    assert waited.err == f"job {done.id} one completed 1/1\n"
    gone = submit("report")
    asyncio.run(cancel_job(gone.id))
    waited = cli("job", "wait", str(gone.id))
    assert waited.code == 1
    assert "status  cancelled" in waited.out


def test_it_waits_so_long_and_warns_where_nobody_works(cli: Cli) -> None:
    job = submit("report")
    late = cli("job", "wait", str(job.id), "--timeout", "0.01")
    assert (late.code, late.out) == (124, "")
    warned, told, said = late.err.splitlines()
    assert warned.startswith("aaiclick: no worker is live")
    assert told == f"job {job.id} report pending 0/1"
    assert "after 0.01 s" in said


@pytest.mark.parametrize("timeout", ["0", "-1", "nan", "inf", "soon", "1e308", "1000000000000"])
def test_what_is_no_length_of_time(cli: Cli, timeout: str) -> None:
    assert cli("job", "wait", "12345", "--timeout", timeout).code == 2


def test_a_job_that_is_not_there(cli: Cli) -> None:
    assert cli("job", "wait", "12345") == (3, "", "aaiclick: No job with id 12345. See: aaiclick job list\n")


def test_on_a_terminal_it_is_one_line_no_longer_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit("a" * 100)
    asyncio.run(cancel_job(job.id))
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "40")
    ended = asyncio.run(progress.follow(job.id, None))
    assert ended["status"] == "cancelled"
    assert screen.getvalue() == "\r\x1b[K" + f"job {job.id} {'a' * 100}"[:39] + "\n"


def test_a_name_does_not_steer_the_terminal(cli: Cli) -> None:
    job = submit("x")
    asyncio.run(run(get_db_url(), "UPDATE jobs SET name = char(27) || '[2J[red]', status = 'failed'"))
    waited = cli("job", "wait", str(job.id))
    assert waited.code == 1
    assert "\x1b" not in waited.out + waited.err
    assert "\\x1b[2J[red]" in waited.err
