"""The catalogue of jobs over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BeforeValidator

from aaiclick.orchestration.registered_jobs import list_registered_jobs
from aaiclick.orchestration.rules.validation import NAME_LENGTH_MAX
from aaiclick.representations.jobs import JobAnswer
from aaiclick.representations.schedules.registered_jobs import (
    RegisteredJobAnswer,
    RegisteredJobList,
    registered_job_answer,
    registered_job_list,
)
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Author, Operator, Viewer
from aaiclick.server.lookups import the_entry
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer
from aaiclick.server.routes.jobs import AGAIN, Key, given_key, submitted
from aaiclick.server.transport.encoded_slashes import with_slashes

router = APIRouter(prefix="/registered-jobs", tags=["registered jobs"])

Name = Annotated[
    str, BeforeValidator(with_slashes), Path(min_length=1, max_length=NAME_LENGTH_MAX, description="The entry's name.")
]


@router.get("", response_model=RegisteredJobList, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.RegisteredQuery, Query()]) -> Response:
    """List the registered jobs, by name."""
    return answer(request, registered_job_list(await list_registered_jobs(asked.enabled_only)))


@router.get("/{name}", response_model=RegisteredJobAnswer, responses=told(404) | UNCHANGED)
async def get(request: Request, name: Name, _: Viewer) -> Response:
    """Show a registered job."""
    return answer(request, registered_job_answer(await the_entry(name)))


@router.put("/{name}", response_model=RegisteredJobAnswer, responses=told(400, 409))
async def register(request: Request, name: Name, body: request_models.RegisterJob, who: Author) -> Response:
    """Create or replace a registered job. Repeating the request changes nothing."""
    return answer(request, await changes.register(who, name, body))


@router.post("/{name}/enable", response_model=RegisteredJobAnswer, responses=told(404, 409))
async def enable(request: Request, name: Name, who: Operator) -> Response:
    """Enable a registered job: it fires from now on, and missed times do not run."""
    return answer(request, await changes.enable(who, name))


@router.post("/{name}/disable", response_model=RegisteredJobAnswer, responses=told(404))
async def disable(request: Request, name: Name, who: Operator) -> Response:
    """Disable a registered job: it no longer fires, and runs that have begun continue."""
    return answer(request, await changes.disable(who, name))


@router.post("/{name}/run", status_code=201, response_model=JobAnswer, responses=told(400, 404, 409) | AGAIN)
async def run(
    request: Request, name: Name, who: Operator, body: request_models.RunRegistered, idempotency_key: Key = None
) -> Response:
    """Run a registered job now, with the function given when it was registered."""
    body.key = given_key(body.key, idempotency_key)
    return await submitted(request, await changes.run(who, name, body))
