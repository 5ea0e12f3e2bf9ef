"""Commands in surroundings that are not kind: impatient hands, a terminal that closes, no home, no directory."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration import get_job, run_job
from aaiclick.orchestration.rules.states import JobStatus
from tests.cli.conftest import Cli, cli, root
from tests.support.program import GONE, ROOT, program

__all__ = ["cli", "root"]

FLOWS = "tests.orchestration.sample_flows"
WAIT_S_MAX = 60

WAITING = ["job wait ID", f"run-job other --entrypoint {FLOWS}.nothing --wait"]
WATCHING = ["job stats ID --watch", "job list --watch"]
NEED_A_ROOT = [
    *WAITING,
    *WATCHING,
    "worker start",
    "background start",
    "worker list --watch",
    "job logs 12345 --follow",
]


@pytest.fixture
def job_id(root: Path) -> str:
    """A job that nobody runs."""
    return str(asyncio.run(run_job("x", f"{FLOWS}.nothing")).id)


def begun(process: subprocess.Popen[str]) -> None:
    """Returns when the command waits for the job, or has shown something for the first time."""
    stream = process.stderr if "wait" in str(process.args) else process.stdout
    assert stream is not None
    for line in stream:
        if "pending" in line:
            return
    pytest.fail("it ended too soon")


def said_by(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.read()


def assert_pending(job_id: str) -> None:
    """Whoever waited or looked on has changed nothing."""
    job = asyncio.run(get_job(int(job_id)))
    assert job is not None
    assert job.status == JobStatus.PENDING


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize(("typed", "pause_s"), [(WAITING[0], 0), (WATCHING[0], 0.05)])
def test_ctrl_c_twice_is_told_as_once(tmp_path: Path, job_id: str, typed: str, pause_s: float) -> None:
    """The second comes while the first is obeyed, or while Python ends. To watch is ended so, a wait is cut short."""
    with program(tmp_path, *typed.replace("ID", job_id).split()) as process:
        begun(process)
        process.send_signal(signal.SIGINT)
        threading.Event().wait(pause_s)
        process.send_signal(signal.SIGINT)
        code, said = process.wait(WAIT_S_MAX), said_by(process)
    assert (code, said) == (130, "aaiclick: interrupted\n") or (typed in WATCHING and (code, said) == (0, ""))
    assert_pending(job_id)


@pytest.mark.parametrize(("typed", "number"), [(WAITING[1], signal.SIGTERM), (WATCHING[1], signal.SIGHUP)])
def test_who_only_looks_ends_with_the_signal(tmp_path: Path, job_id: str, typed: str, number: signal.Signals) -> None:
    with program(tmp_path, *typed.replace("ID", job_id).split()) as process:
        begun(process)
        process.send_signal(number)
        assert (process.wait(WAIT_S_MAX), said_by(process).replace("1 of 1 job\n", "")) == (-number, "")
    assert_pending(job_id)


# ---------------------------------------------------------------- outputs, home, directory


def test_whoever_reads_no_more_ends_the_watching(tmp_path: Path, job_id: str) -> None:
    with program(tmp_path, *f"job stats {job_id} --watch".split()) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert (process.wait(WAIT_S_MAX), said_by(process)) == (141, "")


@pytest.mark.parametrize("typed", NEED_A_ROOT)
def test_without_a_home_every_command_says_what_to_set(cli: Cli, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    for name in ("HOME", "AAICLICK_LOCAL_ROOT"):
        monkeypatch.delenv(name, raising=False)
    reset_settings()
    refused = cli(*typed.replace("ID", "12345").split(), *(("--app-dir", "/") if typed == "worker start" else ()))
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "Set HOME, or set AAICLICK_LOCAL_ROOT" in refused.err


def test_in_a_directory_that_is_gone_who_needs_none_works(
    cli: Cli, job_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert cli("job", "stats", job_id).code == 0
    assert cli("job", "wait", job_id, "--timeout", "0.1").code == 124
    assert cli("run-job", "again", "--entrypoint", f"{FLOWS}.nothing").code == 0
    monkeypatch.undo()


@pytest.mark.parametrize(("typed", "said"), [("data serve", "serving"), ("data list", "directory does not exist")])
def test_in_a_directory_that_is_gone_the_engine_serves_and_others_are_told(
    tmp_path: Path, typed: str, said: str
) -> None:
    """chdb cannot be loaded there: whose process it is may stand elsewhere, who is a guest says so."""
    gone = tmp_path / "gone"
    gone.mkdir()
    with program(tmp_path, *typed.split(), shell=GONE, PLACE=str(gone)) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert said in line
        if typed == "data serve":
            process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S_MAX) == (0 if typed == "data serve" else 6)


# ---------------------------------------------------------------- files


def test_what_is_made_belongs_to_its_owner_alone_whatever_the_umask(cli: Cli, root: Path, tmp_path: Path) -> None:
    """But for the files within the engine's directory, which nobody else can enter."""
    before = os.umask(0)
    try:
        assert cli("run-job", "x", "--entrypoint", f"{FLOWS}.nothing").code == 0
        assert cli("token", "create", "someone").code == 0
        with program(tmp_path, *f"worker start --max-tasks 1 --concurrency 1 --app-dir {ROOT}".split()) as worker:
            worker.communicate(timeout=WAIT_S_MAX)
    finally:
        os.umask(before)
    assert worker.returncode == 0
    found = {place: stat.S_IMODE(place.lstat().st_mode) for place in [root, *root.rglob("*")]}
    assert {place.suffix for place in found} >= {".db", ".log"}
    assert not {place: oct(mode) for place, mode in found.items() if mode & 0o077 or mode & 0o600 != 0o600}
