"""`aaiclick run-job`: run a job now, by name; with `--wait`, to its end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.job import to_json
from aaiclick.cli.loop import wait_for
from aaiclick.cli.output import AsJson, printable, say, show_facts, show_json
from aaiclick.cli.registered_job import Kwargs, Preservation, read_kwargs
from aaiclick.errors import InputError

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Job

FAILED = 1


def run_job(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The registered job's name, or any, with --entrypoint.")],
    kwargs: Kwargs = None,
    preservation_mode: Preservation = None,
    entrypoint: Annotated[str | None, typer.Option(help="What to run instead of the registered one.")] = None,
    key: Annotated[str | None, typer.Option(help="Run it once for this key, however often it is asked for.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit with 1 unless it completed.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait at most; exit with 124 then.")] = None,
    as_json: AsJson = False,
) -> int:
    """Run a job now."""
    if timeout is not None and not (wait and 0 < timeout < float("inf")):
        raise InputError(field="--timeout", value=timeout, rule="a number of seconds above 0, with --wait", hint="")
    options = {"preservation_mode": preservation_mode, "key": key}
    job = wait_for(_run((name, entrypoint, read_kwargs(kwargs)), options, wait, timeout))
    if as_json:
        show_json(to_json(job))
    else:
        show_facts({field: to_json(job)[field] for field in ("id", "name", "status", "error")})
    return FAILED if wait and job.status != "completed" else 0


async def _run(given: tuple[Any, ...], options: dict[str, Any], wait: bool, timeout_s: float | None) -> Job:
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.jobs import wait_for_job  # here, to keep start-up light
    from aaiclick.orchestration.registered_jobs import run_job as run  # here, to keep start-up light
    from aaiclick.orchestration.workers import count_live_workers  # here, to keep start-up light

    async with orch_context():
        job = await run(*given, **options)
        if not await count_live_workers():
            say("aaiclick: no worker is live: it waits for one (start one with: aaiclick worker start)")
        if not wait:
            return job
        try:
            return await wait_for_job(job.id, timeout_s=timeout_s, told=_tell)
        finally:
            _end_of_line()


def _tell(job: Job) -> None:
    """How far it is: one line that changes on a terminal, a line each elsewhere."""
    line = printable(f"job {job.id} {job.name} {job.status} {job.completed_tasks}/{job.total_tasks}")
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
    else:
        say(line)


def _end_of_line() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\n")
