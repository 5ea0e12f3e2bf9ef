"""`--watch`"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.cli.jobs import watching
from aaiclick.orchestration import cancel_job
from tests.cli.conftest import Cli
from tests.cli.jobs.test_job import submit
from tests.cli.test_output import Terminal
from tests.support import warm


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOK_EVERY_S", 0.001)


def watch(states: list[str], *, is_over="end", **options: bool) -> None:
    left = iter(states)

    async def read() -> str:
        found = next(left)
        if found == "ctrl-c":
            raise KeyboardInterrupt
        return found

    watching.watch(read, print, is_over=lambda state: state == is_over, **options)


def test_each_change_is_a_block_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    watch(["a", "a", "b", "b", "a", "end", "never"])
    assert capsys.readouterr().out == "a\n\nb\n\na\n\nend\n"
    watch(["a", "b", "end"], as_json=True)
    assert capsys.readouterr().out == "a\nb\nend\n"


def test_ctrl_c_is_how_one_stops(capsys: pytest.CaptureFixture[str]) -> None:
    watch(["a", "ctrl-c"])
    assert capsys.readouterr().out == "a\n"


def test_a_terminal_shows_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    watch(["a", "end"])
    assert screen.getvalue() == f"{watching.CLEARED}a\n{watching.CLEARED}end\n"


def test_a_job_is_watched_to_its_end(cli: Cli) -> None:
    job = submit("report", 2)
    asyncio.run(cancel_job(job.id))
    assert cli("job", "get", str(job.id), "--watch", "--json").data["status"] == "cancelled"
    assert "2  cancelled" in cli("job", "stats", str(job.id), "--watch").out
    assert cli("job", "stats", str(job.id)[-8:], "--watch", "--json").data["status"] == "cancelled"
    assert cli("job", "get", "12345", "--watch").code == 3


def test_a_job_that_does_not_change_is_shown_once(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([False, False, False, True])
    monkeypatch.setattr("aaiclick.cli.jobs.job._has_ended", lambda _: next(looks))
    assert cli("job", "get", str(submit("report", 2).id), "--watch").out.count("name ") == 1


@pytest.mark.parametrize("noun", ["job", "worker"])
def test_lists_are_watched_until_ctrl_c(noun: str, root: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "AAICLICK_LOCAL_ROOT": str(root)}
    command = [sys.executable, "-m", "aaiclick", noun, "list", "--watch", "--json"]
    process = warm.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f'{{"{noun}s": []')
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_list_on_a_terminal_is_no_longer_than_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        submit(f"job {number}")
    monkeypatch.setenv("LINES", "5")
    shown = []

    def once(read, show, *, as_json: bool) -> None:
        shown.extend(asyncio.run(read())["jobs"])

    monkeypatch.setattr("aaiclick.cli.jobs.job.watch", once)
    monkeypatch.setattr("aaiclick.cli.jobs.job.is_terminal", lambda: True)
    cli("job", "list", "--watch")
    assert [job["name"] for job in shown] == ["job 3", "job 2"]
