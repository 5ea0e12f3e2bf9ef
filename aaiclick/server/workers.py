"""Workers over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from aaiclick.errors import NotFound
from aaiclick.orchestration.rules.names import check_id
from aaiclick.orchestration.workers import deregister_worker, drain_worker, get_worker, list_workers
from aaiclick.server import models, requests
from aaiclick.server.answers import answer
from aaiclick.server.documents import UNCHANGED, told
from aaiclick.server.who import Operator, Viewer

router = APIRouter(prefix="/workers", tags=["workers"])


@router.get("", response_model=models.WorkerList, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[requests.WorkersQuery, Query()]) -> Response:
    """List workers, the newest first."""
    return answer(request, models.WorkerList.of(list(await list_workers(asked.status))))


@router.get("/{worker_id}", response_model=models.WorkerAnswer, responses=told(404) | UNCHANGED)
async def get(request: Request, worker_id: requests.IdPath, _: Viewer) -> Response:
    """Show a worker."""
    worker = await get_worker(int(worker_id))
    if worker is None:
        raise NotFound(what="worker", field="id", value=worker_id, hint="")
    return answer(request, models.WorkerAnswer.of(worker))


@router.post("/{worker_id}/drain", response_model=models.Asked, responses=told(404))
async def drain(request: Request, worker_id: requests.IdPath, who: Operator) -> Response:
    """Ask a worker to finish what it runs and to leave."""
    wanted = check_id(int(worker_id), "worker id")
    async with who.changes("drain", f"worker {wanted}"):
        asked = await drain_worker(wanted)
    return answer(request, models.Asked(asked=asked))


@router.post("/{worker_id}/stop", response_model=models.Asked, responses=told(404))
async def stop(request: Request, worker_id: requests.IdPath, who: Operator) -> Response:
    """End a worker's session now: what it runs is given to others, and its own results are refused."""
    wanted = check_id(int(worker_id), "worker id")
    async with who.changes("stop", f"worker {wanted}"):
        if await get_worker(wanted) is None:
            raise NotFound(what="worker", field="id", value=wanted, hint="")
        asked = await deregister_worker(wanted)
    return answer(request, models.Asked(asked=asked))
