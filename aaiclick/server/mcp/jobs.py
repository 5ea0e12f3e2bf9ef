"""Tools that show jobs."""

from __future__ import annotations

from aaiclick.orchestration import jobs
from aaiclick.orchestration.queries import job_graphs
from aaiclick.orchestration.queries.dead_letters import list_dead_letters
from aaiclick.orchestration.queries.expectations import list_job_expectations
from aaiclick.orchestration.store.reading.job_graphs import JobGraph
from aaiclick.representations.dead_letters import DeadLetterPage, dead_letter_page
from aaiclick.representations.graphs import GraphAnswer, GraphTaskPage, graph_answer, graph_task_page
from aaiclick.representations.jobs import (
    JobAnswer,
    JobErrors,
    JobPage,
    ResultAnswer,
    StatsAnswer,
    job_answer,
    job_errors,
    job_page,
    result_answer,
    stats_answer,
)
from aaiclick.server.lookups import the_job
from aaiclick.server.mcp import arguments
from aaiclick.server.mcp.bounds import LETTERS, PAGE, TEXT_LENGTH_MAX
from aaiclick.server.mcp.tools import Call, reads


@reads(PAGE)
async def find_jobs(call: Call, asked: arguments.FindJobs) -> JobPage:
    """Find jobs, newest first. Begin here: status "failed" lists failed jobs, each with its first error.

    A job is one run of a workflow. Continue with list_failed_tasks for the failed tasks and their errors.
    """
    before = None if asked.before is None else int(asked.before)
    found = await jobs.list_jobs(asked.status, asked.name_like, asked.limit, before=before)
    return job_page(found, asked.limit)


@reads()
async def get_job(call: Call, asked: arguments.OneJob) -> JobAnswer:
    """Show a job: its status, times, numbers of tasks, and its error (that of its first failure)."""
    return job_answer(await the_job(asked.job_id))


@reads()
async def get_job_errors(call: Call, asked: arguments.OneJob) -> JobErrors:
    """Show where the tasks of a job failed: errors and tracebacks of a few, and expectations that were not met."""
    await the_job(asked.job_id)
    unmet = await list_job_expectations(int(asked.job_id))
    return job_errors(await jobs.list_job_errors(int(asked.job_id)), unmet)


@reads()
async def get_job_result(call: Call, asked: arguments.OneJob) -> ResultAnswer:
    """Show the result of a job. Refused unless it has completed."""
    return result_answer(int(asked.job_id), await jobs.show_job_result(int(asked.job_id), TEXT_LENGTH_MAX))


@reads()
async def get_job_stats(call: Call, asked: arguments.OneJob) -> StatsAnswer:
    """Count a job's tasks by status, and show how long it waited and ran. Cheap, even for very large jobs.

    upstream_failed counts tasks that did not run because a task that they depend on failed.
    """
    return stats_answer(await jobs.compute_job_stats(int(asked.job_id)))


@reads(LETTERS)
async def list_failed_tasks(call: Call, asked: arguments.FailedTasks) -> DeadLetterPage:
    """List the tasks of a job that failed for good, each with its error.

    Continue with list_task_runs for the tracebacks of its attempts, and read_task_log for its output. Tasks that only
    failed because of another task are not listed: list_job_tasks with status "upstream_failed" has them.
    """
    before = None
    if asked.before is not None:
        job_id, _, task_id = asked.before.partition("-")
        before = (int(job_id), int(task_id))
    found = await list_dead_letters(before, asked.limit, job_id=int(asked.job_id))
    if not found:
        await the_job(asked.job_id)
    return dead_letter_page(found, asked.limit)


@reads(PAGE)
async def list_job_tasks(call: Call, asked: arguments.JobTasks) -> GraphTaskPage:
    """List the tasks of a job, of one status or all, in the order of their creation."""
    after = None if asked.after is None else int(asked.after)
    rows = await job_graphs.list_job_tasks(int(asked.job_id), asked.status, after, asked.limit)
    return graph_task_page(rows, asked.limit)


@reads()
async def get_job_graph(call: Call, asked: arguments.JobGraph) -> GraphAnswer:
    """Show the graph of a job: its tasks, groups, and dependencies (`next` waits for `previous`).

    Only for small jobs: at most `limit` of each are shown. For larger ones use list_job_tasks, and why_pending for a
    single task.
    """
    found = await job_graphs.get_job_graph(int(asked.job_id), asked.limit + 1)
    for name, rows in found._asdict().items():
        if len(rows) > asked.limit:
            call.cut.append(f"{name}: these are the first {asked.limit}; there are more.")
    return graph_answer(JobGraph(*(rows[: asked.limit] for rows in found)))
