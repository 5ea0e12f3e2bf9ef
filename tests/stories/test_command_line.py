"""A job from its submission to its logs, as somebody at a terminal sees it, with a worker of its own process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from tests.cli.conftest import Cli, cli
from tests.support import warm

__all__ = ["cli"]

FLOWS = """
from aaiclick.orchestration import Group, job, task

@task
def part(n):
    print("part", n)
    return n

@task(max_retries=0)
def check(parts):
    print("checking")
    raise ValueError(f"only {len(parts)}")

@job
def nightly(n):
    with Group("parts"):
        parts = [part(i) for i in range(n)]
    check(parts)
"""


@pytest.fixture
def machine(tmp_path: Path, migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """A directory with workflows, where the commands are run; and a worker there, in a process of its own."""
    (tmp_path / "flows.py").write_text(FLOWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("AAICLICK_SQL_URL", migrated_sql_url)
    reset_settings()
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "aaiclick", "worker", "start", "--concurrency", "1"]
    worker = warm.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    yield worker
    if worker.poll() is None:
        worker.send_signal(signal.SIGINT)
    worker.communicate(timeout=60)
    reset_settings()


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
def test_a_failed_job_is_run_followed_looked_at_and_retried(cli: Cli, machine: subprocess.Popen[str]) -> None:
    submitted = cli("run-job", "x", "--entrypoint", "flows.nightly", "--kwargs", '{"n": 2}', "--json")
    assert submitted.code == 0, submitted.err
    job_id = submitted.data["id"]

    followed = cli("job", "logs", job_id[-9:], "--follow")
    written = [line for line in followed.out.splitlines() if line and not line.startswith("==>")]
    assert (followed.code, written[:4]) == (
        0,
        ["part 0", "part 1", "checking", "Traceback (most recent call last):"],
    )
    assert written[-1].startswith("ValueError: "), written[-1]

    waited = cli("job", "wait", job_id, "--json")
    assert (waited.code, waited.data["status"]) == (1, "failed")
    assert waited.err == f"job {job_id} x failed 3/4\n"

    tree = cli("job", "graph", job_id).out
    assert "parts/  (2 completed)" in tree
    assert "check  failed" in tree

    (task,) = cli("dlq", "list", "--job", job_id, "--json").data["tasks"]
    assert "only 2" in task["error"]
    assert cli("task", "logs", task["id"], "--tail", "1") == (0, "ValueError: only 2\n", "")

    assert cli("task", "retry", task["id"][-9:]) == (0, task["id"] + "\n", "1 task will run again.\n")
    watched = cli("job", "stats", job_id, "--watch", "--json")
    assert (watched.code, '"status": "failed"' in watched.out.splitlines()[-1]) == (0, True)

    (worker,) = cli("worker", "list", "--json").data["workers"]
    assert cli("worker", "drain", worker["id"]).code == 0
    assert machine.wait(60) == 0
