"""`aaiclick run-job`: run a job now, by name; with `--wait`, to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.jobs.job import show_outcome
from aaiclick.cli.jobs.progress import check_timeout, exit_code, follow, warn_if_nobody_works
from aaiclick.cli.jobs.registered_job import Kwargs, Preservation, converted_kwargs, read_kwargs
from aaiclick.cli.output import AsJson
from aaiclick.errors import InputError

if TYPE_CHECKING:
    from aaiclick.client import AsyncAPIClient
    from aaiclick.representations.jobs import JobAnswer


def run_job(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The registered job's name; with --entrypoint, any name.")
    ],
    kwargs: Kwargs = None,
    preservation_mode: Preservation = None,
    entrypoint: Annotated[str | None, typer.Option(help="The function to run instead of the registered one.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Run the job once for this key, however often the command is repeated.")
    ] = None,
    priority: Annotated[int | None, typer.Option(help="The priority of its tasks: higher ones run first.")] = None,
    timeout_s: Annotated[
        float | None, typer.Option(help="The job fails if it has not ended after this many seconds.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Run all tasks, and cache no results.")] = False,
    refresh_cache: Annotated[
        bool, typer.Option("--refresh-cache", help="Run all tasks, and replace their cached results.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the job ends; exit with 1 unless it completed.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="Wait at most this many seconds, then exit with 124.")] = None,
    as_json: AsJson = False,
) -> int:
    """Run a job now."""
    if timeout is not None and not wait:
        raise InputError(field="--timeout", value=timeout, rule="it needs --wait", hint="")
    check_timeout(timeout)
    if no_cache and refresh_cache:
        raise InputError(field="--refresh-cache", value="and --no-cache", rule="one of them is given", hint="")
    options: dict[str, Any] = {"cache_mode": "off" if no_cache else "refresh" if refresh_cache else None}
    options |= {"preservation_mode": preservation_mode, "key": key, "priority": priority, "timeout_s": timeout_s}
    job = wait_for(_run((name, entrypoint, read_kwargs(kwargs)), options, wait, timeout))
    show_outcome(job, as_json)
    return exit_code(job) if wait else 0


async def _run(given: tuple[Any, ...], options: dict[str, Any], wait: bool, timeout_s: float | None) -> JobAnswer:
    if (api := afar()) is not None:
        return await _run_afar(api, given, options, wait, timeout_s)
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.registered_jobs import run_job_from_json  # here, to keep start-up light
    from aaiclick.representations.jobs import job_answer  # here, to keep start-up light

    async with orch_context():
        name, entrypoint, kwargs = given
        job = await run_job_from_json(name, entrypoint, await converted_kwargs(kwargs, name, entrypoint), **options)
        await warn_if_nobody_works()
        return await follow(job.id, timeout_s) if wait else job_answer(job)


async def _run_afar(
    api: AsyncAPIClient, given: tuple[Any, ...], options: dict[str, Any], wait: bool, timeout_s: float | None
) -> JobAnswer:
    name, entrypoint, kwargs = given
    if entrypoint is None:
        job = await api.run_registered_job(name, kwargs, **options)
    else:
        job = await api.submit_job(name, entrypoint, kwargs, **options)
    await warn_if_nobody_works()
    return await follow(int(job["id"]), timeout_s) if wait else job
