"""Workers over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from aaiclick.orchestration.workers import list_workers
from aaiclick.representations.workers import Asked, WorkerAnswer, WorkerPage, worker_answer, worker_page
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Operator, Viewer
from aaiclick.server.lookups import the_worker
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer

router = APIRouter(prefix="/workers", tags=["workers"])


@router.get("", response_model=WorkerPage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.WorkersQuery, Query()]) -> Response:
    """List workers, newest first, including those that have ended."""
    before = None if asked.before is None else int(asked.before)
    found = await list_workers(asked.status, asked.limit, before=before)
    return answer(request, worker_page(found, asked.limit))


@router.get("/{worker_id}", response_model=WorkerAnswer, responses=told(404) | UNCHANGED)
async def get(request: Request, worker_id: request_models.IdPath, _: Viewer) -> Response:
    """Show a worker."""
    return answer(request, worker_answer(await the_worker(worker_id)))


@router.post("/{worker_id}/drain", response_model=Asked, responses=told(404))
async def drain(request: Request, worker_id: request_models.IdPath, who: Operator) -> Response:
    """Ask a worker to finish its running tasks and end."""
    return answer(request, await changes.drain(who, worker_id))


@router.post("/{worker_id}/stop", response_model=Asked, responses=told(404))
async def stop(request: Request, worker_id: request_models.IdPath, who: Operator) -> Response:
    """End a worker's session now: its tasks go to other workers, and its own results are refused."""
    return answer(request, await changes.stop(who, worker_id))
