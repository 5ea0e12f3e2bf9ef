"""`aaiclick run-job`"""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

import pytest

from aaiclick.orchestration import ajob_test, get_job_result, list_jobs
from tests.cli.conftest import Cli

HERE = "tests.orchestration.scheduled_flows"
PLAIN = f"{HERE}.plain"


@contextmanager
def worker(status: str) -> Iterator[None]:
    """Somebody runs the next job to its end once it is there."""

    async def work() -> None:
        async with asyncio.timeout(60):
            while not (jobs := await list_jobs(status="pending")):  # noqa: ASYNC110 (another loop submits)
                await asyncio.sleep(0.01)
        done = await ajob_test(jobs[0])
        assert done.status == status

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        assert not thread.is_alive()


def test_a_registered_job_is_run_with_its_defaults(cli: Cli) -> None:
    cli("register-job", PLAIN, "--kwargs", '{"x": 5}')
    ran = cli("run-job", "plain", "--kwargs", '{"y": 1}', "--preservation-mode", "FULL", "--json")
    assert ran.code == 0
    assert (ran.data["name"], ran.data["status"], ran.data["run_type"]) == ("plain", "pending", "manual")
    assert ran.data["preservation_mode"] == "full"
    assert ran.err == "aaiclick: no worker is live: the job waits for one (start one with: aaiclick worker start)\n"


def test_a_job_that_nobody_registered_needs_an_entrypoint(cli: Cli) -> None:
    missing = cli("run-job", "x")
    assert (missing.code, missing.out) == (3, "")
    assert "No registered job with name 'x'" in missing.err
    assert cli("run-job", "x", "--entrypoint", PLAIN).out.splitlines()[1] == "name    x"


def test_waiting_ends_with_the_job_and_its_outcome_is_the_exit_code(cli: Cli) -> None:
    with worker("completed"):
        done = cli("run-job", "s", "--entrypoint", f"{HERE}.single", "--kwargs", '{"x": 2}', "--wait", "--json")
    assert (done.code, done.data["status"], done.data["completed_tasks"]) == (0, "completed", 2)
    assert "s pending 0/1" in done.err
    assert "s completed 2/2" in done.err
    with worker("failed"):
        failed = cli("run-job", "f", "--entrypoint", "tests.orchestration.sample_flows.fail", "--wait")
    assert failed.code == 1
    assert "ValueError: no" in failed.out


def test_on_a_terminal_one_line_changes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker("completed"):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        done = cli("run-job", "p", "--entrypoint", PLAIN, "--wait", "--json")
    assert "\r\x1b[K" in done.err
    assert "1/1" in done.err.rpartition("\r")[2]  # of a job that took long, a bar is left


def test_a_wait_that_takes_too_long_ends_with_124(cli: Cli) -> None:
    late = cli("run-job", "x", "--entrypoint", PLAIN, "--wait", "--timeout", "0.01")
    assert (late.code, late.out) == (124, "")
    assert "is pending after 0.01 s of waiting; it goes on" in late.err


@pytest.mark.parametrize("options", [("--timeout", "5"), ("--wait", "--timeout", "0"), ("--wait", "--timeout", "nan")])
def test_a_time_limit_needs_a_wait_and_a_number(cli: Cli, options: tuple[str, ...]) -> None:
    assert cli("run-job", "x", "--entrypoint", PLAIN, *options).code == 2
    assert cli("job", "list", "--json").data["total"] == 0


def test_a_key_runs_it_once(cli: Cli) -> None:
    ids = {cli("run-job", "x", "--entrypoint", PLAIN, "--key", "k", "--json").data["id"] for _ in range(2)}
    assert len(ids) == 1


def test_arguments_become_what_annotations_promise_or_are_refused(cli: Cli) -> None:
    entrypoint = "tests.support.annotated.all_kinds"
    refused = cli("run-job", "x", "--entrypoint", entrypoint, "--kwargs", '{"order": {"number": "7"}}')
    assert refused.code == 2
    assert "kwargs.order.number" in refused.err
    with worker("completed"):
        done = cli("run-job", "x", "--entrypoint", entrypoint, "--kwargs", '{"day": "2026-02-03"}', "--wait")
    assert done.code == 0
    (made,) = asyncio.run(list_jobs())
    assert asyncio.run(get_job_result(made.id))["day"] == date(2026, 2, 3)
    entry = cli("register-job", entrypoint, "--kwargs", '{"colour": "blue"}', "--json")
    assert entry.data["default_kwargs"]["colour"] == "blue"
    assert cli("register-job", entrypoint, "--name", "y", "--kwargs", '{"colour": "green"}').code == 2


def test_arguments_that_are_too_large_are_refused_also_together_with_the_defaults(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AAICLICK_VALUE_BYTES_MAX", "1000")
    half = json.dumps({"left": "x" * 600})
    assert cli("register-job", "tests.server.outside_flows.pair", "--kwargs", half).code == 0
    assert cli("run-job", "pair", "--kwargs", half).code == 0
    for given in (half.replace("left", "right"), json.dumps({"left": "x" * 1_000})):
        refused = cli("run-job", "pair", "--kwargs", given)
        assert (refused.code, refused.out) == (2, "")
        assert "more than the limit of 1000" in refused.err
