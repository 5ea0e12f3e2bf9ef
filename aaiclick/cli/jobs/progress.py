"""How far a job is, told while a command waits for it; and how it ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from aaiclick.cli.output import printable, say

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Job

FAILED = 1


def check_timeout(timeout_s: float | None) -> None:
    """Refuse what is no length of time."""
    from aaiclick.orchestration.rules.validation import check_seconds  # here, to keep start-up light

    if timeout_s is not None:
        check_seconds(timeout_s, "--timeout")


async def follow(job_id: int, timeout_s: float | None) -> Job:
    """Wait for a job's end and tell how far it is, on stderr."""
    from aaiclick.orchestration.jobs import wait_for_job  # here, to keep start-up light

    try:
        return await wait_for_job(job_id, timeout_s=timeout_s, told=_tell)
    finally:
        if _on_terminal():
            sys.stderr.write("\n")


async def warn_if_nobody_works() -> None:
    """Say so if no worker is live."""
    from aaiclick.orchestration.workers import count_live_workers  # here, to keep start-up light

    if not await count_live_workers():
        say("aaiclick: no worker is live: it waits for one (start one with: aaiclick worker start)")


def exit_code(job: Job) -> int:
    """The outcome of a job that was waited for."""
    return 0 if job.status == "completed" else FAILED


def _tell(job: Job) -> None:
    """One line that changes on a terminal, a line each elsewhere."""
    line = printable(f"job {job.id} {job.name} {job.status} {job.completed_tasks}/{job.total_tasks}")
    if _on_terminal():
        import shutil  # here, to keep start-up light

        sys.stderr.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()
    else:
        say(line)


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
