"""What is asked for by its id or name, or NotFound."""

from __future__ import annotations

from aaiclick.errors import NotFound
from aaiclick.orchestration.backfills import get_backfill
from aaiclick.orchestration.jobs import get_job
from aaiclick.orchestration.models import Backfill, Job, RegisteredJob, Task, Worker
from aaiclick.orchestration.models.node_info import NodeInfo
from aaiclick.orchestration.nodes import get_node
from aaiclick.orchestration.registered_jobs import get_registered_job
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.tasks import get_task
from aaiclick.orchestration.workers import get_worker


async def the_job(text: str) -> Job:
    """The job with this id."""
    job = await get_job(int(text))
    if job is None:
        raise NotFound(what="job", field="id", value=text, hint="")
    return job


async def the_task(text: str) -> Task:
    """The task with this id."""
    task = await get_task(int(text))
    if task is None:
        raise NotFound(what="task", field="id", value=text, hint="")
    return task


async def the_worker(text: str) -> Worker:
    """The worker with this id."""
    worker = await get_worker(int(text))
    if worker is None:
        raise NotFound(what="worker", field="id", value=text, hint="")
    return worker


async def the_node(name: str) -> NodeInfo:
    """The node of this name."""
    node = await get_node(name)
    if node is None:
        raise NotFound(what="node", field="name", value=name, hint="")
    return node


async def the_backfill(text: str) -> Backfill:
    """The backfill with this id."""
    found = await get_backfill(int(text))
    if found is None:
        raise NotFound(what="backfill", field="id", value=text, hint="")
    return found


async def the_entry(name: str) -> RegisteredJob:
    """The registered job of this name."""
    entry = await get_registered_job(name)
    if entry is None:
        raise NotFound(what="registered job", field="name", value=shorten(name), hint="")
    return entry
