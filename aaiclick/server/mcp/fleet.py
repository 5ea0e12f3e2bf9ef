"""Tools that show everything around jobs: events, dead letters, workers, the catalogue, health and metrics."""

from __future__ import annotations

from aaiclick.orchestration import backfills, nodes, registered_jobs, workers
from aaiclick.orchestration.queries import cached_results, dead_letters
from aaiclick.orchestration.queries.event_feed import read_job_events
from aaiclick.orchestration.queries.health import health_check
from aaiclick.orchestration.queries.metrics import render_metrics
from aaiclick.orchestration.rules.schedules.fires import read_time
from aaiclick.representations.cached_results import CachePage, cache_page
from aaiclick.representations.dead_letters import DeadLetterPage, dead_letter_page
from aaiclick.representations.events import EventPage, event_page
from aaiclick.representations.health import HealthAnswer, health_answer
from aaiclick.representations.metrics import MetricsAnswer
from aaiclick.representations.nodes import NodeAnswer, NodePage, node_answer, node_page
from aaiclick.representations.schedules.backfills import (
    BackfillAnswer,
    BackfillPage,
    BackfillPlan,
    backfill_answer,
    backfill_page,
)
from aaiclick.representations.schedules.fires import FirePage, fire_page
from aaiclick.representations.schedules.registered_jobs import (
    RegisteredJobAnswer,
    RegisteredJobList,
    registered_job_answer,
    registered_job_list,
)
from aaiclick.representations.workers import WorkerPage, worker_page
from aaiclick.server import changes, request_models
from aaiclick.server.lookups import the_backfill, the_entry, the_job, the_node
from aaiclick.server.mcp import arguments
from aaiclick.server.mcp.bounds import LETTERS, LOG, PAGE, TIMES
from aaiclick.server.mcp.tools import Call, reads


@reads(PAGE)
async def list_job_events(call: Call, asked: arguments.JobEvents) -> EventPage:
    """List the events of a job and its tasks, in order: each move with its time, attempt (epoch) and worker.

    With `last`, list the last events. More may follow after `next`; an empty page means that nothing is new.
    """
    after = int(asked.after or 0)
    found = await read_job_events(int(asked.job_id), after, limit=asked.limit, last=asked.last)
    if not found:
        await the_job(asked.job_id)
    return event_page(found, found[-1].id if found else after)


@reads(LETTERS)
async def list_dead_letters(call: Call, asked: arguments.Letters) -> DeadLetterPage:
    """List tasks of all jobs that failed for good, those of the newest jobs first, with their errors."""
    before = None
    if asked.before is not None:
        job_id, _, task_id = asked.before.partition("-")
        before = (int(job_id), int(task_id))
    return dead_letter_page(await dead_letters.list_dead_letters(before, asked.limit), asked.limit)


@reads(PAGE)
async def list_cache(call: Call, asked: arguments.CachePage) -> CachePage:
    """List remembered results of tasks marked `cache` or `idempotency_key`, the newest first.

    A later call of such a function with the same arguments gets the remembered result, and its body does not run: see
    `cache_outcome` of the task.
    """
    before = None if asked.before is None else int(asked.before)
    found = await cached_results.list_cache(asked.entrypoint, asked.limit, before=before)
    return cache_page(found, asked.limit)


@reads(PAGE)
async def list_workers(call: Call, asked: arguments.Workers) -> WorkerPage:
    """List workers, newest first: host, process, slots, last heartbeat. Without live workers no task runs."""
    before = None if asked.before is None else int(asked.before)
    found = await workers.list_workers(asked.status, asked.limit, before=before)
    return worker_page(found, asked.limit)


@reads(PAGE)
async def list_nodes(call: Call, asked: arguments.Nodes) -> NodePage:
    """List the machines that run tasks, by name: state, status, what each has, slots and running tasks."""
    found = await nodes.list_nodes(asked.state, asked.limit, status=asked.status, after=asked.after)
    return node_page(found, asked.limit)


@reads()
async def get_node(call: Call, asked: arguments.OneNode) -> NodeAnswer:
    """Show a node: a machine that runs tasks, its state, what it has (processors, memory, labels), slots and load."""
    return node_answer(await the_node(asked.name))


@reads()
async def list_registered_jobs(call: Call, asked: arguments.Entries) -> RegisteredJobList:
    """List the registered jobs, which run by name or on a schedule, with entrypoint, schedule and next time."""
    return registered_job_list(await registered_jobs.list_registered_jobs(asked.enabled_only))


@reads()
async def get_registered_job(call: Call, asked: arguments.OneEntry) -> RegisteredJobAnswer:
    """Show a registered job: its entrypoint, schedule, next time, and how its jobs run."""
    return registered_job_answer(await the_entry(asked.name))


@reads(TIMES)
async def list_fires(call: Call, asked: arguments.Fires) -> FirePage:
    """List the times of a registered job's schedule with their outcomes, latest first, each with its latest run."""
    before = None if asked.before is None else read_time(asked.before, "before")
    found = await registered_jobs.list_fires(asked.name, asked.limit, before=before)
    return fire_page(found, asked.limit)


@reads(PAGE)
async def list_backfills(call: Call, asked: arguments.Backfills) -> BackfillPage:
    """List the backfills of a registered job, newest first: ranges of past times, counted by outcome."""
    before = None if asked.before is None else int(asked.before)
    return backfill_page(await backfills.list_backfills(asked.name, asked.limit, before=before), asked.limit)


@reads()
async def get_backfill(call: Call, asked: arguments.OneBackfill) -> BackfillAnswer:
    """Show a backfill: its progress, and its times by outcome."""
    return backfill_answer(await the_backfill(asked.backfill_id))


@reads()
async def plan_backfill(call: Call, asked: arguments.PlanBackfill) -> BackfillPlan:
    """Show which past times of a registered job a backfill would run, and the outcome of each so far."""
    how = request_models.CreateBackfill.model_validate(asked.model_dump(exclude={"name"}))
    return await changes.plan_backfill(asked.name, how)


@reads()
async def check_health(call: Call, asked: arguments.Nothing) -> HealthAnswer:
    """Check the whole installation: database, schema, workers, tasks of lost workers, leader, disk; with hints.

    Call this first when no task runs.
    """
    return health_answer(await health_check())


@reads(LOG)
async def get_metrics(call: Call, asked: arguments.Metrics) -> MetricsAnswer:
    """Show metrics in the text format of Prometheus: queue depth, live workers, tasks by outcome, durations."""
    lines = (await render_metrics()).splitlines()
    wanted = [line for line in lines if asked.contains is None or asked.contains in line]
    return MetricsAnswer(text="\n".join(wanted))
