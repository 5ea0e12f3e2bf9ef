"""Past times of schedules over HTTP: what became of them, and running them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from aaiclick.orchestration.backfills import list_backfills
from aaiclick.orchestration.registered_jobs import list_fires
from aaiclick.orchestration.rules.schedules.fires import read_time
from aaiclick.representations.jobs import Cancelled
from aaiclick.representations.schedules.backfills import (
    BackfillAnswer,
    BackfillPage,
    BackfillPlan,
    backfill_answer,
    backfill_page,
)
from aaiclick.representations.schedules.fires import FirePage, fire_page
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Operator, Viewer
from aaiclick.server.lookups import the_backfill
from aaiclick.server.openapi import UNCHANGED, Responses, told
from aaiclick.server.responses import answer
from aaiclick.server.routes.registered_jobs import Name

router = APIRouter(tags=["backfills"])

PLANNED: Responses = {200: {"model": BackfillPlan, "description": "What it would do (`dry_run`)."}}


@router.get("/registered-jobs/{name}/fires", response_model=FirePage, responses=told(404) | UNCHANGED)
async def fires(
    request: Request, name: Name, _: Viewer, asked: Annotated[request_models.FiresQuery, Query()]
) -> Response:
    """List the times of a registered job with their outcomes, latest first."""
    before = None if asked.before is None else read_time(asked.before, "before")
    found = await list_fires(name, asked.limit, before=before)
    return answer(request, fire_page(found, asked.limit))


@router.get("/registered-jobs/{name}/backfills", response_model=BackfillPage, responses=told(404) | UNCHANGED)
async def list_(
    request: Request, name: Name, _: Viewer, asked: Annotated[request_models.PageQuery, Query()]
) -> Response:
    """List the backfills of a registered job, newest first."""
    before = None if asked.before is None else int(asked.before)
    found = await list_backfills(name, asked.limit, before=before)
    return answer(request, backfill_page(found, asked.limit))


@router.post(
    "/registered-jobs/{name}/backfills",
    status_code=201,
    response_model=BackfillAnswer,
    responses=told(400, 404, 409) | PLANNED,
)
async def create(request: Request, name: Name, who: Operator, body: request_models.CreateBackfill) -> Response:
    """Run past times of a registered job's schedule in a range; with `dry_run`, only return which would run (200)."""
    if body.dry_run:
        return answer(request, await changes.plan_backfill(name, body))
    return answer(request, await changes.backfill(who, name, body), status=201)


@router.get("/backfills/{backfill_id}", response_model=BackfillAnswer, responses=told(404) | UNCHANGED)
async def get(request: Request, backfill_id: request_models.IdPath, _: Viewer) -> Response:
    """Show a backfill, with its times by outcome."""
    return answer(request, backfill_answer(await the_backfill(backfill_id)))


@router.post("/backfills/{backfill_id}/cancel", response_model=Cancelled, responses=told(404))
async def cancel(request: Request, backfill_id: request_models.IdPath, who: Operator) -> Response:
    """Start no more runs of a backfill; runs that have begun continue."""
    return answer(request, await changes.cancel_backfill(who, backfill_id))
