"""Dead letters over HTTP: tasks that were given up."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from aaiclick.orchestration.queries.dead_letters import list_dead_letters
from aaiclick.representations.dead_letters import DeadLetterPage, dead_letter_page
from aaiclick.representations.tasks import Cleared
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Operator, Viewer
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer

router = APIRouter(prefix="/dead-letters", tags=["dead letters"])


@router.get("", response_model=DeadLetterPage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.DeadLettersQuery, Query()]) -> Response:
    """List tasks that failed and are not tried again, those of the newest jobs first."""
    before = None
    if asked.before is not None:
        job, _dash, task = asked.before.partition("-")
        before = (int(job), int(task))
    job_id = None if asked.job_id is None else int(asked.job_id)
    return answer(request, dead_letter_page(await list_dead_letters(before, asked.limit, job_id=job_id), asked.limit))


@router.post("/{task_id}/replay", response_model=Cleared, responses=told(404, 409))
async def replay(request: Request, task_id: request_models.IdPath, who: Operator) -> Response:
    """Run a dead letter again, with everything downstream of it."""
    return answer(request, await changes.replay(who, task_id))
