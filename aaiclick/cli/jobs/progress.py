"""How far a job is, told while a command waits for it; and how it ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from aaiclick.cli.afar import afar
from aaiclick.cli.output import printable, say

if TYPE_CHECKING:
    from aaiclick.representations.jobs import JobAnswer

FAILED = 1


def check_timeout(timeout_s: float | None) -> None:
    """Refuse an invalid timeout."""
    from aaiclick.orchestration.rules.validation import check_seconds  # here, to keep start-up light

    if timeout_s is not None:
        check_seconds(timeout_s, "--timeout")


async def follow(job_id: int, timeout_s: float | None) -> JobAnswer:
    """Wait until a job ends, and print its progress on stderr."""
    try:
        if (api := afar()) is not None:
            return await api.wait_for_job(job_id, timeout_s=timeout_s, told=_tell)
        from aaiclick.orchestration.jobs import wait_for_job  # here, to keep start-up light
        from aaiclick.representations.jobs import job_answer  # here, to keep start-up light

        return job_answer(await wait_for_job(job_id, timeout_s=timeout_s, told=lambda job: _tell(job_answer(job))))
    finally:
        if _on_terminal():
            sys.stderr.write("\n")


async def warn_if_nobody_works() -> None:
    """Print a warning if no worker is live."""
    if not await _somebody_works():
        say("aaiclick: no worker is live: the job waits for one (start one with: aaiclick worker start)")


async def _somebody_works() -> bool:
    if (api := afar()) is not None:
        for status in ("active", "idle"):
            if (await api.list_workers(status=status, limit=1))["workers"]:
                return True
        return False
    from aaiclick.orchestration.workers import count_live_workers  # here, to keep start-up light

    return bool(await count_live_workers())


def exit_code(job: JobAnswer) -> int:
    """Return the exit code for the outcome of a job."""
    return 0 if job["status"] == "completed" else FAILED


def _tell(job: JobAnswer) -> None:
    """One line that changes on a terminal, a line each elsewhere."""
    done = f"{job['completed_tasks']}/{job['total_tasks']}"
    line = printable(f"job {job['id']} {job['name']} {job['status']} {done}")
    if _on_terminal():
        import shutil  # here, to keep start-up light

        sys.stderr.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()
    else:
        say(line)


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
