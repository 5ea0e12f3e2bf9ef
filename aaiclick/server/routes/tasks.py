"""Tasks and their logs over HTTP."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from aaiclick.errors import NotFound
from aaiclick.orchestration.execution.logs.log_reading import LogPart, read_log
from aaiclick.orchestration.queries.expectations import list_task_expectations
from aaiclick.orchestration.queries.log_following import LogPosition, follow_log
from aaiclick.orchestration.queries.pending import why_pending
from aaiclick.orchestration.queries.task_list import list_tasks
from aaiclick.orchestration.tasks import get_runs_for_task, get_traceback
from aaiclick.representations.pending import PendingAnswer, pending_answer
from aaiclick.representations.tasks import Cleared, RunList, TaskDetail, TaskPage, run_list, task_detail, task_page
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Operator, Viewer
from aaiclick.server.lookups import the_task
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer
from aaiclick.server.streaming.streams import Stream

TEXT = "text/plain; charset=utf-8"

router = APIRouter(prefix="/tasks", tags=["tasks"])

_LOG = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The log's bytes as they are."}


@router.get("", response_model=TaskPage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.TasksQuery, Query()]) -> Response:
    """List tasks of all jobs, the newest first, or those that no node may run."""
    which = asked.model_dump(exclude={"status", "limit", "before"})
    before = None if asked.before is None else int(asked.before)
    return answer(request, task_page(await list_tasks(asked.status, asked.limit, before=before, **which)))


@router.get("/{task_id}", response_model=TaskDetail, responses=told(404) | UNCHANGED)
async def get(request: Request, task_id: request_models.IdPath, _: Viewer) -> Response:
    """Show a task, and where a failed task failed."""
    task = await the_task(task_id)
    return answer(request, task_detail(task, await get_traceback(task.id), await list_task_expectations(task.id)))


@router.get("/{task_id}/runs", response_model=RunList, responses=told(404) | UNCHANGED)
async def runs(request: Request, task_id: request_models.IdPath, _: Viewer) -> Response:
    """Show the ended attempts of a task."""
    await the_task(task_id)
    return answer(request, run_list(await get_runs_for_task(int(task_id))))


@router.get("/{task_id}/pending", response_model=PendingAnswer, responses=told(404) | UNCHANGED)
async def pending(request: Request, task_id: request_models.IdPath, _: Viewer) -> Response:
    """Show why a task is pending: what it waits for, by name, or which worker, limit, delay or policy holds it."""
    return answer(request, pending_answer(await why_pending(int(task_id))))


@router.post("/{task_id}/clear", response_model=Cleared, responses=told(400, 404, 409))
async def clear(
    request: Request, task_id: request_models.IdPath, who: Operator, body: request_models.Clear | None = None
) -> Response:
    """Run a task again, in whatever state it is, with everything downstream of it."""
    return answer(request, await changes.clear(who, task_id, body or request_models.Clear()))


# ---------------------------------------------------------------- logs


@router.get("/{task_id}/logs", response_class=Response, responses=told(404) | {200: _LOG})
async def logs(
    request: Request, task_id: request_models.IdPath, _: Viewer, asked: Annotated[request_models.LogsQuery, Query()]
) -> Response:
    """Show the log of a task, of its newest attempt or another; with `follow`, until the task ends.

    `X-Log-Size` is the current size in bytes; `X-Log-Complete` is `false` while its worker has yet to send the rest.
    """
    task = await the_task(task_id)
    part = await _read(task.id, asked.epoch, asked.offset, asked.limit)
    if asked.follow:
        start = asked.offset if asked.offset >= 0 else max(0, part.size + asked.offset if part else 0)
        return Stream(request, follow_log(task.id, asked.epoch, start=LogPosition(start)), media_type=TEXT)
    if part is None:
        hint = "The task wrote nothing yet, its log was removed, or is on another machine: see AAICLICK_LOG_STORE."
        raise NotFound(what="log", field="task", value=task.id, hint=hint)
    return Response(part.data, media_type=TEXT, headers=_facts(part))


def _facts(part: LogPart) -> dict[str, str]:
    return {"X-Log-Size": str(part.size), "X-Log-Complete": "true" if part.complete else "false"}


async def _read(task_id: int, epoch: int | None, offset: int, limit: int) -> LogPart | None:
    return await asyncio.to_thread(read_log, task_id, epoch, offset=offset, limit=limit)
