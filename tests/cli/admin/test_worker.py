"""`aaiclick worker` and `aaiclick background`"""

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from aaiclick.orchestration.models import Worker
from aaiclick.orchestration.workers import deregister_worker, list_workers, register_worker
from tests.cli.conftest import Cli
from tests.cli.jobs.test_job import submit


def register(name: str | None = None) -> Worker:
    return asyncio.run(register_worker(name=name))


def test_list_shows_the_newest_first(cli: Cli) -> None:
    first, second = register(), register("gpu box")
    listed = cli("worker", "list")
    header, *rows = [line.split("\t") for line in listed.out.splitlines()]
    assert header == ["id", "name", "host", "pid", "status", "slots", "completed", "failed", "last heartbeat"]
    assert [row[:2] for row in rows] == [[str(second.id), "gpu box"], [str(first.id), ""]]
    assert listed.err == "2 workers\n"


def test_list_as_json_and_by_status(cli: Cli) -> None:
    gone, there = register(), register()
    asyncio.run(deregister_worker(gone.id))
    (listed,) = cli("worker", "list", "--status", "ACTIVE", "--json").data["workers"]
    assert (listed["id"], listed["pid"], listed["status"]) == (str(there.id), os.getpid(), "active")
    assert listed["expires_at"] > listed["last_heartbeat"]


def test_a_worker_says_what_it_is_and_where(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    submit("report", 1)
    said = cli("worker", "start", "--executor", "inline", "--max-tasks", "1", "--name", "one").err
    assert f"Worker one on {socket.gethostname()}, pid {os.getpid()}: 100 tasks at a time in this process.\n" in said
    assert "State in sqlite" in said
    assert f"Modules from {os.getcwd()}, logs in " in said


def test_no_workers(cli: Cli) -> None:
    assert cli("worker", "list").err == "no workers\n"


def test_a_status_that_is_none_gets_the_list_of_those_that_are(cli: Cli) -> None:
    answer = cli("worker", "list", "--status", "ACTIV")
    assert answer.code == 2
    assert "active" in answer.err


def test_stop_asks_a_worker_to_leave(cli: Cli) -> None:
    worker = register()
    assert cli("worker", "stop", str(worker.id)).err == f"Worker {worker.id} is asked to stop.\n"
    (asked,) = asyncio.run(list_workers())
    assert asked.status == "stopping"
    asyncio.run(deregister_worker(worker.id))
    answer = cli("worker", "stop", str(worker.id), "--json")
    assert (answer.code, answer.data) == (0, {"id": str(worker.id), "asked": False})


def test_drain_asks_a_worker_to_finish_and_stop_now_does_not_wait(cli: Cli) -> None:
    worker = register()
    said = f"Worker {worker.id} is asked to finish its tasks and end.\n"
    assert cli("worker", "drain", str(worker.id)[-9:]) == (0, "", said)
    assert [each.status for each in asyncio.run(list_workers())] == ["stopping"]
    assert cli("worker", "stop", str(worker.id), "--now").err == f"Worker {worker.id} no longer has a session.\n"
    assert [each.status for each in asyncio.run(list_workers())] == ["stopped"]
    assert cli("worker", "drain", str(worker.id), "--json").data == {"id": str(worker.id), "asked": False}
    assert cli("worker", "stop", str(worker.id), "--now").err == f"Worker {worker.id} has stopped already.\n"


@pytest.mark.parametrize("verb", [("stop",), ("stop", "--now"), ("drain",)])
@pytest.mark.parametrize(
    ("given", "code"), [("12345", 3), ("0x10", 2), ("1e3", 2), ("0", 2), ("9223372036854775808", 2)]
)
def test_stop_of_what_is_no_worker(cli: Cli, verb: tuple[str, ...], given: str, code: int) -> None:
    answer = cli("worker", *verb, given)
    assert answer.code == code
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--executor", "thread"], "one of process, inline"),
        (["--concurrency", "0"], "concurrency"),
        (["--concurrency", "10001"], "from 1 to 10000"),
        (["--concurrency", "abc"], "concurrency"),
        (["--max-tasks", "0"], "max_tasks"),
        (["--name", "a\x00b"], "Worker name"),
        (["--app-dir", "no/such/place"], "the directory does not exist"),
    ],
)
def test_start_refuses_what_makes_no_sense(cli: Cli, options: list[str], said: str) -> None:
    answer = cli("worker", "start", *options)
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert said in answer.err


def test_start_in_a_directory_that_is_gone(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    answer = cli("worker", "start")
    assert answer.code == 2
    assert "the current directory does not exist" in answer.err
    monkeypatch.undo()


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_start_runs_what_is_there_and_leaves_after_max_tasks(
    cli: Cli, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    submit("report", 3)
    answer = cli("worker", "start", "--executor", executor, "--max-tasks", "3", "--name", "one", "--concurrency", "2")
    assert answer.code == 0, answer.err
    (job,) = cli("job", "list", "--json").data["jobs"]
    assert (job["status"], job["completed_tasks"]) == ("completed", 3)
    (worker,) = cli("worker", "list", "--json").data["workers"]
    assert (worker["name"], worker["status"], worker["tasks_completed"]) == ("one", "stopped", 3)
    assert (worker["concurrency"], worker["pid"]) == (2, os.getpid())


def test_start_with_a_database_that_is_away(cli: Cli, on_url) -> None:
    on_url("postgresql+asyncpg://me:secret@127.0.0.1:1/none")
    answer = cli("worker", "start")
    assert (answer.code, answer.err.count("\n")) == (6, 1)
    assert "secret" not in answer.err


def test_background_needs_its_verb(cli: Cli) -> None:
    assert "start" in cli("background", "--help").out
    assert cli("background").code == 2
