"""What a fleet tells: lines for people, JSON for programs."""

from __future__ import annotations

import json
import sys

import pytest

from aaiclick.cli.local.fleet_events import LINES, in_json, in_lines


def test_people_get_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    in_lines("started", part="worker 1", pid=7)
    in_lines("died", part="worker 1", pid=7, code=-9, cause="was killed by SIGKILL", again_in_s=0.0)
    in_lines("died", part="engine", pid=8, code=1, cause="ended with exit code 1", again_in_s=0.5)
    in_lines("said", part="engine", text="serving {this}")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "aaiclick: worker 1 started (process 7)",
        "aaiclick: worker 1 was killed by SIGKILL (process 7); it is started again",
        "aaiclick: engine ended with exit code 1 (process 8); it is started again in 0.5 s",
        "engine: serving {this}",
    ]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"server": None, "token_file": None}, "  server    none; it comes with: pip install 'aaiclick[server]'"),
        ({"server": "http://x/api/v1", "token_file": None}, "  token     one of yours, or: aaiclick token create NAME"),
        ({"server": "http://x/api/v1", "token_file": "/x/y"}, "  token     in /x/y (an admin's)"),
    ],
)
def test_people_are_told_how_to_open_the_server(
    capsys: pytest.CaptureFixture[str], facts: dict[str, object], said: str
) -> None:
    rest = dict.fromkeys(("root", "database", "data", "logs", "workers", "concurrency", "modules"), "x")
    in_lines("begins", **rest, **facts)
    assert said in capsys.readouterr().err.splitlines()


def test_a_few_of_the_files_that_changed_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    in_lines("reloading", files=["a.py", "b\n.py"], count=7)
    in_lines("reloading", files=["a.py"], count=1)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("aaiclick: changed: a.py, b\\n.py and 5 more; the workers")
    assert second.startswith("aaiclick: changed: a.py; the workers")


def test_programs_get_one_json_object_a_line_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    in_json("begins", root="/x\n", workers=2)
    in_json("stopped")
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [
        {"event": "begins", "root": "/x\n", "workers": 2},
        {"event": "stopped"},
    ]
    assert err == ""


class Gone:
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")

    def flush(self) -> None:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Gone())
    in_lines("stopped")


def test_a_program_that_reads_no_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(OSError, match="Input/output"):
        in_json("stopped")


def test_a_process_without_stdout_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    in_json("stopped")


def test_every_line_begins_in_lower_case_or_names_a_part() -> None:
    assert all(line.startswith(("aaiclick: ", "{part}: ")) for line in LINES.values())
