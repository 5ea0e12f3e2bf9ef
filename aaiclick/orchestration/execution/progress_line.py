"""The progress bar of `job_test`: one line on the terminal."""

from __future__ import annotations

import sys
from typing import TextIO

from aaiclick.orchestration.models import Job
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.rules.validation import escape_for_terminal

WIDTH = 30


class ProgressLine:
    """Redraws one line of a terminal. Draws nothing if the stream is not a terminal, or has been closed."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream: TextIO | None = stream or sys.stderr
        self._last = ""

    def __call__(self, job: Job) -> None:
        try:
            if self.stream is not None and self.stream.isatty():  # sys.stderr is None in a process without a console
                self._draw(job)
        except (OSError, ValueError):  # the terminal was closed: the job goes on
            self.stream = None

    def _draw(self, job: Job) -> None:
        line = progress_text(job)
        if line != self._last and self.stream is not None:
            end = "\n" if job.status in ENDED_JOB else ""
            self.stream.write(f"\r\x1b[2K{line}{end}")
            self.stream.flush()
            self._last = line


def progress_text(job: Job) -> str:
    """Return the text of the line, such as `pipeline  ██████░░░░  6/10  running`."""
    total = max(job.total_tasks, 1)
    filled = WIDTH * (job.total_tasks - job.open_tasks) // total
    bar = "█" * filled + "░" * (WIDTH - filled)
    failed = f"  {job.failed_tasks} failed" if job.failed_tasks else ""
    return f"{escape_for_terminal(job.name)}  {bar}  {job.completed_tasks}/{job.total_tasks}{failed}  {job.status}"
