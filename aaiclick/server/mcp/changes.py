"""Tools that change something. They exist only where that was allowed at start; who asked is written down."""

from __future__ import annotations

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.roles import Role
from aaiclick.representations.cached_results import CacheCleared
from aaiclick.representations.jobs import Cancelled, JobAnswer, job_answer
from aaiclick.representations.nodes import NodeAnswer, NodeRemoved
from aaiclick.representations.resources import ResourceAnswer, ResourceRemoved
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
    """Cancel a job and all of its tasks that have not ended; running tasks are stopped. False if the job had ended."""
    return await front.cancel(call.who, asked.job_id)


@changes(Role.OPERATOR, destructive=True, idempotent=False)
async def retry_job(call: Call, asked: arguments.RetryJob) -> Cleared:
    """Run the failed tasks of a job again, with everything downstream of them.

    Use dry_run first: it changes nothing and returns the tasks that would run. If the call is refused because inputs
    are gone, `upstream` also runs the tasks that made them.
    """
    return await front.retry(
        call.who, asked.job_id, request_models.Clear(dry_run=asked.dry_run, upstream=asked.upstream)
    )


@changes(Role.OPERATOR, destructive=True, idempotent=False)
async def clear_task(call: Call, asked: arguments.ClearTask) -> Cleared:
    """Run a task again, in whatever state it is, with everything downstream of it; their results are discarded.

    Use dry_run first: it changes nothing and returns the tasks that would run.
    """
    return await front.clear(
        call.who, asked.task_id, request_models.Clear(dry_run=asked.dry_run, upstream=asked.upstream)
    )


@changes(Role.OPERATOR, destructive=True, idempotent=False)
async def replay_dead_letter(call: Call, asked: arguments.OneTask) -> Cleared:
    """Run a dead letter (a task that failed for good) again, with everything downstream. Refused for other tasks."""
    return await front.replay(call.who, asked.task_id)


@changes(Role.OPERATOR, destructive=True)
async def clear_cache(call: Call, asked: arguments.ClearCache) -> CacheCleared:
    """Remove remembered results: all, those of one function, or one entry. The next runs make them anew."""
    which = request_models.ClearCache(entrypoint=asked.entrypoint, entry_id=asked.entry_id)
    return await front.clear_cache(call.who, which)


@changes(Role.AUTHOR, destructive=False, idempotent=False)
async def submit_job(call: Call, asked: request_models.SubmitJob) -> JobAnswer:
    """Run a function marked @task or @job, by its importable name, as a new job.

    Only names under the allowed prefixes are accepted. Arguments are plain data. With a `key`, a repeated call
    returns the first job instead of creating a second one: always give a key.
    """
    return job_answer(await front.submit(call.who, asked))


# ---------------------------------------------------------------- the catalogue


@changes(Role.OPERATOR, destructive=False, idempotent=False)
async def run_registered_job(call: Call, asked: arguments.RunEntry) -> JobAnswer:
    """Run a registered job now. `kwargs` override its defaults.

    With a `key`, the same call returns the first job instead of creating a second one: always give a key.
    """
    how = request_models.RunRegistered.model_validate(asked.model_dump(exclude={"name"}))
    return job_answer(await front.run(call.who, asked.name, how))


@changes(Role.AUTHOR, destructive=True)
async def register_job(call: Call, asked: arguments.RegisterEntry) -> RegisteredJobAnswer:
    """Create or replace a registered job.

    Only names under the allowed prefixes are accepted. A registered job with a schedule fires from then on.
    """
    how = request_models.RegisterJob.model_validate(asked.model_dump(exclude={"name"}))
    return await front.register(call.who, asked.name, how)


@changes(Role.OPERATOR, destructive=False)
async def enable_registered_job(call: Call, asked: arguments.OneEntry) -> RegisteredJobAnswer:
    """Enable a registered job: it fires from now on, and missed times do not run."""
    return await front.enable(call.who, asked.name)


@changes(Role.OPERATOR, destructive=True)
async def disable_registered_job(call: Call, asked: arguments.OneEntry) -> RegisteredJobAnswer:
    """Disable a registered job: it no longer fires, and runs that have begun continue."""
    return await front.disable(call.who, asked.name)


@changes(Role.OPERATOR, destructive=False, idempotent=False)
async def backfill_registered_job(call: Call, asked: arguments.CreateBackfill) -> BackfillAnswer:
    """Run past times of a registered job's schedule in a range, some at a time, except those that have run.

    Call plan_backfill first. `failed` runs only times whose last run failed, `force` runs all of them again.
    """
    if asked.dry_run:
        rule, hint = "this tool runs them", "Ask plan_backfill."
        raise InputError(field="dry_run", value=True, rule=rule, hint=hint)
    how = request_models.CreateBackfill.model_validate(asked.model_dump(exclude={"name"}))
    return await front.backfill(call.who, asked.name, how)


@changes(Role.OPERATOR, destructive=True)
async def cancel_backfill(call: Call, asked: arguments.OneBackfill) -> Cancelled:
    """Start no more runs of a backfill; runs that have begun continue. False if it had ended."""
    return await front.cancel_backfill(call.who, asked.backfill_id)


# ---------------------------------------------------------------- workers


@changes(Role.OPERATOR, destructive=True)
async def drain_worker(call: Call, asked: arguments.OneWorker) -> Asked:
    """Ask a worker to finish its running tasks and end. False if its session was over already."""
    return await front.drain(call.who, asked.worker_id)


@changes(Role.OPERATOR, destructive=True)
async def stop_worker(call: Call, asked: arguments.OneWorker) -> Asked:
    """End a worker's session now: its tasks go to other workers, and its own results are refused.

    Use it for a worker that hangs; otherwise use drain_worker. False if its session was over already.
    """
    return await front.stop(call.who, asked.worker_id)


# ---------------------------------------------------------------- nodes


@changes(Role.OPERATOR, destructive=True)
async def cordon_node(call: Call, asked: arguments.OneNode) -> NodeAnswer:
    """Let the workers of a machine claim no more tasks; what they run goes on, and they stay."""
    return await front.cordon_node(call.who, asked.name)


@changes(Role.OPERATOR, destructive=False)
async def uncordon_node(call: Call, asked: arguments.OneNode) -> NodeAnswer:
    """Let the workers of a machine claim tasks again."""
    return await front.uncordon_node(call.who, asked.name)


@changes(Role.OPERATOR, destructive=True)
async def drain_node(call: Call, asked: arguments.OneNode) -> NodeAnswer:
    """Ask the workers of a machine to claim no more tasks, to finish what they run, and to leave."""
    return await front.drain_node(call.who, asked.name)


@changes(Role.OPERATOR, destructive=True, idempotent=False)
async def remove_node(call: Call, asked: arguments.RemoveNode) -> NodeRemoved:
    """Forget a machine that is gone; what its workers still held is given to others. Refused while it is alive."""
    return await front.remove_node(call.who, asked.name, request_models.RemoveNode(force=asked.force))


# ---------------------------------------------------------------- resources


@changes(Role.OPERATOR, destructive=True)
async def set_resource(call: Call, asked: arguments.SetResource) -> ResourceAnswer:
    """Set how much there is of something that tasks need, for all machines together: licences, seats, connections."""
    return await front.set_resource(call.who, asked.name, asked.amount)


@changes(Role.OPERATOR, destructive=True, idempotent=False)
async def remove_resource(call: Call, asked: arguments.OneResource) -> ResourceRemoved:
    """Forget a capacity of the whole installation: tasks that need it wait. What runs hold of it stays theirs."""
    return await front.remove_resource(call.who, asked.name)
