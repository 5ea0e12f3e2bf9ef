"""`aaiclick run-job`: run a job now, by name; with `--wait`, to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.jobs.job import show_outcome
from aaiclick.cli.jobs.progress import check_timeout, exit_code, follow, warn_if_nobody_works
from aaiclick.cli.jobs.registered_job import Kwargs, Preservation, converted_kwargs, read_kwargs
from aaiclick.cli.output import AsJson
from aaiclick.errors import InputError

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Job


def run_job(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The registered job's name, or any, with --entrypoint.")],
    kwargs: Kwargs = None,
    preservation_mode: Preservation = None,
    entrypoint: Annotated[str | None, typer.Option(help="What to run instead of the registered one.")] = None,
    key: Annotated[str | None, typer.Option(help="Run it once for this key, however often it is asked for.")] = None,
    priority: Annotated[int | None, typer.Option(help="Which of its tasks come first: higher ones.")] = None,
    timeout_s: Annotated[float | None, typer.Option(help="Seconds after which it fails unless it has ended.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit with 1 unless it completed.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait at most; exit with 124 then.")] = None,
    as_json: AsJson = False,
) -> int:
    """Run a job now."""
    if timeout is not None and not wait:
        raise InputError(field="--timeout", value=timeout, rule="it counts with --wait", hint="")
    check_timeout(timeout)
    options = {"preservation_mode": preservation_mode, "key": key, "priority": priority, "timeout_s": timeout_s}
    job = wait_for(_run((name, entrypoint, read_kwargs(kwargs)), options, wait, timeout))
    show_outcome(job, as_json)
    return exit_code(job) if wait else 0


async def _run(given: tuple[Any, ...], options: dict[str, Any], wait: bool, timeout_s: float | None) -> Job:
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.registered_jobs import run_job_from_json  # here, to keep start-up light

    async with orch_context():
        name, entrypoint, kwargs = given
        job = await run_job_from_json(name, entrypoint, await converted_kwargs(kwargs, name, entrypoint), **options)
        await warn_if_nobody_works()
        return await follow(job.id, timeout_s) if wait else job
