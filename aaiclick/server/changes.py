"""What somebody outside may change: one function behind each verb, whoever asks, and who asked is written down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aaiclick.errors import NotAllowed
from aaiclick.orchestration import backfills, nodes
from aaiclick.orchestration.access.untrusted_entrypoints import already_trusted, converted_outside, from_outside
from aaiclick.orchestration.jobs import cancel_job, retry_failed_tasks
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.models.node_info import NodeInfo
from aaiclick.orchestration.queries import cached_results
from aaiclick.orchestration.queries.dead_letters import replay_dead_letter
from aaiclick.orchestration.registered_jobs import (
    disable_job,
    enable_job,
    get_registered_job,
    run_job_from_json,
    upsert_registered_job,
)
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import plain
from aaiclick.orchestration.rules.schedules.fires import read_when
from aaiclick.orchestration.rules.secrets import secrets_in
from aaiclick.orchestration.rules.validation import check_id, check_name, shorten
from aaiclick.orchestration.tasks import clear_task
from aaiclick.orchestration.workers import deregister_worker, drain_worker
from aaiclick.representations.cached_results import CacheCleared
from aaiclick.representations.jobs import Cancelled
from aaiclick.representations.nodes import NodeAnswer, NodeRemoved, node_answer, node_removed
from aaiclick.representations.schedules.backfills import BackfillAnswer, BackfillPlan, backfill_answer, backfill_plan
from aaiclick.representations.schedules.registered_jobs import RegisteredJobAnswer, registered_job_answer
from aaiclick.representations.tasks import Cleared, cleared
from aaiclick.representations.workers import Asked
from aaiclick.server import request_models
from aaiclick.server.auth.actors import Actor
from aaiclick.server.lookups import the_entry, the_job, the_worker

# ---------------------------------------------------------------- jobs and tasks


async def submit(who: Actor, asked: request_models.SubmitJob) -> Job:
    """Run a function that is named from outside; with a key, the job that this key had before."""
    check_name(asked.name, "Job name")
    target = f"job {shorten(asked.name)}: {plain(asked.entrypoint)}"
    async with who.changes("submit", target) as change, from_outside(asked.entrypoint) as entrypoint:
        await _refuse_others_secrets(asked.name, entrypoint)
        given = await converted_outside(entrypoint, asked.kwargs or {})
        job = await _run(asked.name, entrypoint, given, asked)
        change.target = f"job {job.id}: {plain(entrypoint)}"
    return job


async def _run(
    name: str,
    entrypoint: str | None,
    kwargs: dict[str, object],
    asked: request_models.SubmitJob | request_models.RunRegistered,
) -> Job:
    return await run_job_from_json(
        name,
        entrypoint,
        kwargs,
        preservation_mode=asked.preservation_mode,
        key=asked.key,
        priority=asked.priority,
        timeout_s=asked.timeout_s,
        cache_mode=asked.cache_mode,
    )


async def _refuse_others_secrets(name: str, entrypoint: str) -> None:
    """The secrets among an entry's defaults are for the function that was registered, not for any that is named."""
    entry = await get_registered_job(name)
    if entry is None or plain(entry.entrypoint) == plain(entrypoint):
        return
    if any(secrets_in(entry.default_kwargs)):
        cause, hint = "the registered job with that name passes secrets to another function", "Choose another name."
        raise NotAllowed(what=f"A job called {shorten(name)} with this entrypoint", cause=cause, hint=hint)


async def cancel(who: Actor, job_id: str) -> Cancelled:
    """Cancel a job and all of its tasks that have not ended."""
    wanted = check_id(int(job_id), "job id")
    async with who.changes("cancel", f"job {wanted}") as change:
        cancelled = await cancel_job(wanted)
        if not cancelled:
            await the_job(job_id)
            change.outcome = "nothing: it had ended already"
    return Cancelled(cancelled=cancelled)


async def retry(who: Actor, job_id: str, how: request_models.Clear) -> Cleared:
    """Run again the tasks of a job that failed, with everything downstream of them."""
    wanted = check_id(int(job_id), "job id")
    if how.dry_run:
        return cleared(await retry_failed_tasks(wanted, dry_run=True, upstream=how.upstream), True)
    async with who.changes("retry", f"job {wanted}"):
        return cleared(await retry_failed_tasks(wanted, upstream=how.upstream))


async def clear(who: Actor, task_id: str, how: request_models.Clear) -> Cleared:
    """Run a task again, whatever it is doing, with everything downstream of it."""
    wanted = check_id(int(task_id), "task id")
    if how.dry_run:
        return cleared(await clear_task(wanted, dry_run=True, upstream=how.upstream), True)
    async with who.changes("clear", f"task {wanted}"):
        return cleared(await clear_task(wanted, upstream=how.upstream))


async def replay(who: Actor, task_id: str) -> Cleared:
    """Run a task again that was given up, with everything downstream of it."""
    wanted = check_id(int(task_id), "task id")
    async with who.changes("replay", f"task {wanted}"):
        return cleared(await replay_dead_letter(wanted))


async def clear_cache(who: Actor, which: request_models.ClearCache) -> CacheCleared:
    """Remove remembered results: all, those of one function, or one entry."""
    entry = None if which.entry_id is None else check_id(int(which.entry_id), "entry id")
    named = "all" if which.entrypoint is None else shorten(which.entrypoint)
    async with who.changes("clear cache", f"entry {entry}" if entry is not None else named):
        return CacheCleared(removed=await cached_results.clear_cache(which.entrypoint, entry_id=entry))


# ---------------------------------------------------------------- registered jobs


async def register(who: Actor, name: str, asked: request_models.RegisterJob) -> RegisteredJobAnswer:
    """Add an entry, or make an old one what this says."""
    check_name(name, "Job name")
    given = asked.model_dump(exclude_none=True)
    named = given.pop("entrypoint")
    target = f"registered job {shorten(name)}: {plain(named)}"
    async with who.changes("register", target), from_outside(named) as entrypoint:
        given["default_kwargs"] = await converted_outside(entrypoint, given.get("default_kwargs") or {})
        return registered_job_answer(await upsert_registered_job(name, entrypoint, **given))


async def enable(who: Actor, name: str) -> RegisteredJobAnswer:
    """Let an entry fire from now on."""
    check_name(name, "Job name")
    async with who.changes("enable", f"registered job {name}"):
        return registered_job_answer(await enable_job(name))


async def disable(who: Actor, name: str) -> RegisteredJobAnswer:
    """Let an entry fire no more."""
    check_name(name, "Job name")
    async with who.changes("disable", f"registered job {name}"):
        return registered_job_answer(await disable_job(name))


async def run(who: Actor, name: str, asked: request_models.RunRegistered) -> Job:
    """Run an entry now; what it runs was decided when it was registered."""
    check_name(name, "Job name")
    async with who.changes("run", f"registered job {name}") as change:
        entry = await the_entry(name)
        async with already_trusted(entry.entrypoint, with_arguments=bool(asked.kwargs)):
            given = await converted_outside(entry.entrypoint, asked.kwargs or {})
            job = await _run(name, None, given, asked)
        change.target = f"job {job.id}: {plain(entry.entrypoint)}"
    return job


# ---------------------------------------------------------------- backfills


async def plan_backfill(name: str, asked: request_models.CreateBackfill) -> BackfillPlan:
    """What a backfill would do; changes nothing."""
    between = (read_when(asked.start, "start"), read_when(asked.end, "end"))
    return backfill_plan(await backfills.plan_backfill(name, *between, force=asked.force, failed=asked.failed))


async def backfill(who: Actor, name: str, asked: request_models.CreateBackfill) -> BackfillAnswer:
    """Run the past times of an entry in a range; what it runs was decided when it was registered."""
    check_name(name, "Job name")
    between = (read_when(asked.start, "start"), read_when(asked.end, "end"))
    async with who.changes("backfill", f"registered job {name}") as change:
        entry = await the_entry(name)
        async with already_trusted(entry.entrypoint, with_arguments=bool(asked.kwargs)):
            given = await converted_outside(entry.entrypoint, asked.kwargs or {})
            made = await backfills.backfill_job(
                name,
                *between,
                parallel=asked.parallel,
                kwargs=given,
                force=asked.force,
                failed=asked.failed,
            )
        change.target = f"backfill {made.id}"
    return backfill_answer(made)


async def cancel_backfill(who: Actor, backfill_id: str) -> Cancelled:
    """Start no more runs of a backfill."""
    wanted = check_id(int(backfill_id), "backfill id")
    async with who.changes("cancel", f"backfill {wanted}") as change:
        cancelled = await backfills.cancel_backfill(wanted)
        if not cancelled:
            change.outcome = "nothing: it had ended already"
    return Cancelled(cancelled=cancelled)


# ---------------------------------------------------------------- workers


async def drain(who: Actor, worker_id: str) -> Asked:
    """Ask a worker to finish what it runs and to leave."""
    wanted = check_id(int(worker_id), "worker id")
    async with who.changes("drain", f"worker {wanted}"):
        return Asked(asked=await drain_worker(wanted))


async def stop(who: Actor, worker_id: str) -> Asked:
    """End a worker's session now."""
    wanted = check_id(int(worker_id), "worker id")
    async with who.changes("stop", f"worker {wanted}"):
        await the_worker(worker_id)
        return Asked(asked=await deregister_worker(wanted))


# ---------------------------------------------------------------- nodes


async def cordon_node(who: Actor, name: str) -> NodeAnswer:
    """Let the workers of a node claim no more tasks."""
    return await _to_node(who, "cordon", name, nodes.cordon_node)


async def uncordon_node(who: Actor, name: str) -> NodeAnswer:
    """Let the workers of a node claim tasks again."""
    return await _to_node(who, "uncordon", name, nodes.uncordon_node)


async def drain_node(who: Actor, name: str) -> NodeAnswer:
    """Ask the workers of a node to finish and to leave."""
    return await _to_node(who, "drain", name, nodes.drain_node)


async def _to_node(who: Actor, verb: str, name: str, act: Callable[[str], Awaitable[NodeInfo]]) -> NodeAnswer:
    check_name(name, "Node name")
    async with who.changes(verb, f"node {name}"):
        return node_answer(await act(name))


async def remove_node(who: Actor, name: str, how: request_models.RemoveNode) -> NodeRemoved:
    """Forget a node, and give to others what its workers still held."""
    check_name(name, "Node name")
    async with who.changes("remove", f"node {name}") as change:
        removed = node_removed(name, await nodes.remove_node(name, force=how.force))
        change.outcome = f"{removed['sessions']} sessions ended, {removed['freed']} runs given to others"
    return removed
