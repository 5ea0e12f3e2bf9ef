"""The graph of a job for display: its tasks, groups and dependencies, without arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aaiclick.errors import NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.rules.validation import check_id, check_paging, check_status
from aaiclick.orchestration.store.reading import job_graphs as store
from aaiclick.orchestration.store.reading.job_graphs import JobGraph
from aaiclick.orchestration.store.reading.jobs import get_job


async def get_job_graph(job_id: int, limit: int | None = None) -> JobGraph:
    """Return the graph of a job, with at most `limit` tasks, groups and dependencies each; raise NotFound."""
    wanted = check_id(job_id, "job id")
    async with connected() as database:
        found = await database.read(lambda session: store.read_graph(session, wanted, limit))
    if found is None:
        raise NotFound(what="job", field="id", value=wanted, hint="List them with: aaiclick job list")
    return found


async def list_job_tasks(
    job_id: int, status: TaskStatus | str | None = None, after: int | None = None, limit: int | None = None
) -> Sequence[Any]:
    """Return rows of a job's tasks as its graph shows them, in the order of creation; raise NotFound.

    `after` is the id of the last task of the previous page.
    """
    wanted = check_id(job_id, "job id")
    only = None if status is None else check_status(status, TaskStatus)
    start = 0 if after is None else check_id(after, "after")
    count, _ = check_paging(limit)
    async with connected() as database:
        rows = await database.read(lambda session: store.list_task_rows(session, wanted, only, start, count))
        if not rows and await database.read(lambda session: get_job(session, wanted)) is None:
            raise NotFound(what="job", field="id", value=wanted, hint="List them with: aaiclick job list")
    return rows
