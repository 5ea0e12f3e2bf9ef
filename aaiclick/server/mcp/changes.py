"""Tools that change something. They exist only where that was allowed at start; who asked is written down."""

from __future__ import annotations

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.roles import Role
from aaiclick.representations.jobs import Cancelled, JobAnswer, job_answer
from aaiclick.representations.schedules.backfills import BackfillAnswer
from aaiclick.representations.schedules.registered_jobs import RegisteredJobAnswer
from aaiclick.representations.tasks import Cleared
from aaiclick.representations.workers import Asked
from aaiclick.server import changes as front
from aaiclick.server import request_models
from aaiclick.server.mcp import arguments
from aaiclick.server.mcp.tools import Call, changes

# ---------------------------------------------------------------- jobs and tasks


@changes(Role.OPERATOR, destructive=True)
async def cancel_job(call: Call, asked: arguments.OneJob) -> Cancelled:
    """Cancel a job and all of its tasks that have not ended; what runs is stopped. False if it had ended before."""
    return await front.cancel(call.who, asked.job_id)


@changes(Role.OPERATOR, destructive=True, idempotent=False)
async def retry_job(call: Call, asked: arguments.RetryJob) -> Cleared:
    """Run again the tasks of a job that failed, with everything downstream of them.

    Ask with dry_run first: it changes nothing and tells which tasks it would be. If it is refused because inputs are
    gone, `upstream` also runs what made them.
    """
    return await front.retry(
        call.who, asked.job_id, request_models.Clear(dry_run=asked.dry_run, upstream=asked.upstream)
    )


@changes(Role.OPERATOR, destructive=True, idempotent=False)
async def clear_task(call: Call, asked: arguments.ClearTask) -> Cleared:
    """Run a task again, whatever it is doing, with everything downstream of it; their results are thrown away.

    Ask with dry_run first: it changes nothing and tells which tasks it would be.
    """
    return await front.clear(
        call.who, asked.task_id, request_models.Clear(dry_run=asked.dry_run, upstream=asked.upstream)
    )


@changes(Role.OPERATOR, destructive=True, idempotent=False)
async def replay_dead_letter(call: Call, asked: arguments.OneTask) -> Cleared:
    """Run a task again that failed and was given up, with everything downstream of it. Refused for any other task."""
    return await front.replay(call.who, asked.task_id)


@changes(Role.AUTHOR, destructive=False, idempotent=False)
async def submit_job(call: Call, asked: request_models.SubmitJob) -> JobAnswer:
    """Run a function marked @task or @job, by its importable name, as a new job.

    Only names under the prefixes that the installation allows. Arguments are plain data. With a `key`, the same call
    again gives the first job again instead of a second one: always give one.
    """
    return job_answer(await front.submit(call.who, asked))


# ---------------------------------------------------------------- the catalogue


@changes(Role.OPERATOR, destructive=False, idempotent=False)
async def run_registered_job(call: Call, asked: arguments.RunEntry) -> JobAnswer:
    """Run an entry of the catalogue now. `kwargs` go over its defaults.

    With a `key`, the same call again gives the first job again instead of a second one: always give one.
    """
    how = request_models.RunRegistered.model_validate(asked.model_dump(exclude={"name"}))
    return job_answer(await front.run(call.who, asked.name, how))


@changes(Role.AUTHOR, destructive=True)
async def register_job(call: Call, asked: arguments.RegisterEntry) -> RegisteredJobAnswer:
    """Add an entry to the catalogue, or make an old one what this says.

    Only names under the prefixes that the installation allows. An entry with a schedule fires from then on.
    """
    how = request_models.RegisterJob.model_validate(asked.model_dump(exclude={"name"}))
    return await front.register(call.who, asked.name, how)


@changes(Role.OPERATOR, destructive=False)
async def enable_registered_job(call: Call, asked: arguments.OneEntry) -> RegisteredJobAnswer:
    """Let an entry of the catalogue fire from now on; what it missed is not made up for."""
    return await front.enable(call.who, asked.name)


@changes(Role.OPERATOR, destructive=True)
async def disable_registered_job(call: Call, asked: arguments.OneEntry) -> RegisteredJobAnswer:
    """Let an entry of the catalogue fire no more; runs that have begun go on."""
    return await front.disable(call.who, asked.name)


@changes(Role.OPERATOR, destructive=False, idempotent=False)
async def backfill_registered_job(call: Call, asked: arguments.CreateBackfill) -> BackfillAnswer:
    """Run the past times of an entry's schedule in a range, so many at once; those that have run are left alone.

    Ask plan_backfill first. `failed` runs only those again whose last run failed, `force` all of them.
    """
    if asked.dry_run:
        rule, hint = "this tool runs them", "Ask plan_backfill."
        raise InputError(field="dry_run", value=True, rule=rule, hint=hint)
    how = request_models.CreateBackfill.model_validate(asked.model_dump(exclude={"name"}))
    return await front.backfill(call.who, asked.name, how)


@changes(Role.OPERATOR, destructive=True)
async def cancel_backfill(call: Call, asked: arguments.OneBackfill) -> Cancelled:
    """Start no more runs of a backfill; those that have begun go on. False if it had ended before."""
    return await front.cancel_backfill(call.who, asked.backfill_id)


# ---------------------------------------------------------------- workers


@changes(Role.OPERATOR, destructive=True)
async def drain_worker(call: Call, asked: arguments.OneWorker) -> Asked:
    """Ask a worker to finish what it runs and to leave. False if its session was over already."""
    return await front.drain(call.who, asked.worker_id)


@changes(Role.OPERATOR, destructive=True)
async def stop_worker(call: Call, asked: arguments.OneWorker) -> Asked:
    """End a worker's session now: what it runs is given to others, and its own results are refused.

    For a worker that hangs; otherwise drain_worker. False if its session was over already.
    """
    return await front.stop(call.who, asked.worker_id)
