"""Jobs over HTTP."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from aaiclick.errors import InputError
from aaiclick.orchestration.connections import wake_ups_trouble
from aaiclick.orchestration.jobs import (
    compute_job_stats,
    count_jobs,
    encode_job_result,
    list_job_errors,
    list_jobs,
    show_job_result,
)
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.queries.expectations import list_job_expectations
from aaiclick.orchestration.queries.job_graphs import get_job_graph, list_job_tasks
from aaiclick.representations.graphs import GraphAnswer, GraphTaskPage, graph_answer, graph_task_page
from aaiclick.representations.jobs import (
    Cancelled,
    ExactResult,
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
from aaiclick.representations.tasks import Cleared
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Author, Operator, Viewer
from aaiclick.server.lookups import the_job
from aaiclick.server.openapi import UNCHANGED, Responses, told
from aaiclick.server.responses import answer
from aaiclick.server.streaming.rows import ARROW, result_query, rows_stream

router = APIRouter(prefix="/jobs", tags=["jobs"])

Key = Annotated[str | None, Header(alias="Idempotency-Key", description="The same as `key` in the body.")]

DEGRADED = "Aaiclick-Degraded"
"""Set on the answer to a submission while hints do not reach other processes: the job waits for the next poll."""

AGAIN: Responses = {200: {"model": JobAnswer, "description": "The existing job of this key."}}


@router.post("", status_code=201, response_model=JobAnswer, responses=told(400, 409) | AGAIN)
async def submit(
    request: Request, body: request_models.SubmitJob, who: Author, idempotency_key: Key = None
) -> Response:
    """Submit a job. With a key, a repeated request returns the first job again (200)."""
    body.key = given_key(body.key, idempotency_key)
    return await submitted(request, await changes.submit(who, body))


def given_key(in_body: str | None, in_header: str | None) -> str | None:
    """Return the key, from the body or the header."""
    if in_body is not None and in_header is not None and in_body != in_header:
        raise InputError(
            field="Idempotency-Key", value=in_header[:80], rule="it differs from the key in the body", hint=""
        )
    return in_header if in_body is None else in_body


async def submitted(request: Request, job: Job) -> Response:
    """Answer 201 for a new job, 200 for the existing job of its key; say so if no worker could be woken for it."""
    degraded = {DEGRADED: "true"} if await wake_ups_trouble() else {}
    return answer(request, job_answer(job), status=200 if job._tasks is None else 201, headers=degraded)


@router.get("", response_model=JobPage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.JobsQuery, Query()]) -> Response:
    """List jobs, newest first."""
    before = None if asked.before is None else int(asked.before)
    found = await list_jobs(asked.status, asked.name_like, asked.limit, before=before)
    total = await count_jobs(asked.status, asked.name_like) if asked.total else None
    return answer(request, job_page(found, asked.limit, total))


@router.get("/{job_id}", response_model=JobAnswer, responses=told(404) | UNCHANGED)
async def get(request: Request, job_id: request_models.IdPath, _: Viewer) -> Response:
    """Show a job."""
    return answer(request, job_answer(await the_job(job_id)))


@router.get("/{job_id}/errors", response_model=JobErrors, responses=told(404) | UNCHANGED)
async def errors(request: Request, job_id: request_models.IdPath, _: Viewer) -> Response:
    """Show where the tasks of a job failed, and the data expectations that were not met."""
    await the_job(job_id)
    found = await list_job_errors(int(job_id)), await list_job_expectations(int(job_id))
    return answer(request, job_errors(*found))


@router.get("/{job_id}/result", response_model=ResultAnswer | ExactResult, responses=told(404, 409) | UNCHANGED)
async def result(
    request: Request, job_id: request_models.IdPath, _: Viewer, asked: Annotated[request_models.ResultQuery, Query()]
) -> Response:
    """Show the result of a job; refused unless it has completed. With `exact`, as clients read it."""
    if asked.exact:
        encoded = json.loads(await encode_job_result(int(job_id)))
        return answer(request, ExactResult(job_id=str(int(job_id)), encoded=encoded))
    return answer(request, result_answer(int(job_id), await show_job_result(int(job_id))))


@router.get("/{job_id}/result/arrow", response_class=Response, responses=told(404, 409) | ARROW)
async def result_arrow(request: Request, job_id: request_models.IdPath, _: Viewer) -> Response:
    """Stream the rows of the Object that a job returned, in the format of Arrow; refused if it returned none."""
    return rows_stream(request, await result_query(int(job_id)))


@router.post("/{job_id}/cancel", response_model=Cancelled, responses=told(404))
async def cancel(request: Request, job_id: request_models.IdPath, who: Operator) -> Response:
    """Cancel a job and all of its tasks that have not ended."""
    return answer(request, await changes.cancel(who, job_id))


@router.post("/{job_id}/retry", response_model=Cleared, responses=told(400, 404, 409))
async def retry(
    request: Request, job_id: request_models.IdPath, who: Operator, body: request_models.Clear | None = None
) -> Response:
    """Run the failed tasks of a job again, with everything downstream of them."""
    return answer(request, await changes.retry(who, job_id, body or request_models.Clear()))


@router.get("/{job_id}/stats", response_model=StatsAnswer, responses=told(404) | UNCHANGED)
async def stats(request: Request, job_id: request_models.IdPath, _: Viewer) -> Response:
    """Show statistics of a job."""
    return answer(request, stats_answer(await compute_job_stats(int(job_id))))


@router.get("/{job_id}/graph", response_model=GraphAnswer, responses=told(404) | UNCHANGED)
async def graph(request: Request, job_id: request_models.IdPath, _: Viewer) -> Response:
    """Show a job's whole graph, without arguments and results."""
    return answer(request, graph_answer(await get_job_graph(int(job_id))))


@router.get("/{job_id}/tasks", response_model=GraphTaskPage, responses=told(404) | UNCHANGED)
async def tasks(
    request: Request, job_id: request_models.IdPath, _: Viewer, asked: Annotated[request_models.JobTasksQuery, Query()]
) -> Response:
    """List the tasks of a job, in the order of their creation."""
    after = None if asked.after is None else int(asked.after)
    rows = await list_job_tasks(int(job_id), asked.status, after, asked.limit)
    return answer(request, graph_task_page(rows, asked.limit))
