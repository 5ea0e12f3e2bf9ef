"""The line on the terminal."""

from __future__ import annotations

import io
import sys

import pytest

from aaiclick.orchestration import Job, JobStatus
from aaiclick.orchestration.execution.progress_line import ProgressLine, progress_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_job(**facts: object) -> Job:
    return Job(**({"id": 1, "name": "pipeline", "total_tasks": 10, "open_tasks": 4, "completed_tasks": 6} | facts))  # type: ignore[arg-type]


def test_the_line_says_how_far_the_job_is() -> None:
    text = progress_text(a_job(status=JobStatus.RUNNING))
    assert text == "pipeline  " + "█" * 18 + "░" * 12 + "  6/10  running"
    assert "2 failed" in progress_text(a_job(failed_tasks=2))


def test_a_job_without_tasks_has_an_empty_bar() -> None:
    assert "░" * 30 + "  0/0  pending" in progress_text(a_job(total_tasks=0, open_tasks=0, completed_tasks=0))


def test_a_name_cannot_move_the_cursor() -> None:
    assert "\x1b" not in progress_text(a_job(name="\x1b[2Jx"))


def test_a_line_is_drawn_once_and_ends_with_the_job() -> None:
    terminal = Terminal()
    line = ProgressLine(terminal)
    for _ in range(3):
        line(a_job(status=JobStatus.RUNNING))
    line(a_job(status=JobStatus.COMPLETED))
    assert terminal.getvalue().count("\r\x1b[2K") == 2
    assert terminal.getvalue().endswith("completed\n")


def test_off_a_terminal_nothing_is_drawn() -> None:
    stream = io.StringIO()
    ProgressLine(stream)(a_job())
    assert stream.getvalue() == ""


def test_a_terminal_that_is_closed_does_not_stop_the_job() -> None:
    terminal = Terminal()
    line = ProgressLine(terminal)
    line(a_job())
    terminal.close()
    line(a_job(completed_tasks=7))
    line(a_job(completed_tasks=8))


def test_a_terminal_that_cannot_be_written_does_not_stop_the_job() -> None:
    class Broken(Terminal):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    line = ProgressLine(Broken())
    line(a_job())
    line(a_job(completed_tasks=7))


def test_a_process_without_stderr_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    ProgressLine()(a_job())
