"""The catalogue of jobs over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from aaiclick.errors import NotFound
from aaiclick.orchestration.models import RegisteredJob
from aaiclick.orchestration.outside import already_trusted, from_outside
from aaiclick.orchestration.registered_jobs import (
    disable_job,
    enable_job,
    get_registered_job,
    list_registered_jobs,
    run_job,
    upsert_registered_job,
)
from aaiclick.orchestration.rules.names import NAME_LENGTH_MAX, check_name, shorten
from aaiclick.server import models, requests
from aaiclick.server.answers import answer
from aaiclick.server.documents import UNCHANGED, told
from aaiclick.server.jobs import AGAIN, Key, given_key, submitted
from aaiclick.server.who import Author, Operator, Viewer

router = APIRouter(prefix="/registered-jobs", tags=["registered jobs"])

Name = Annotated[str, Path(min_length=1, max_length=NAME_LENGTH_MAX, description="The entry's name.")]


@router.get("", response_model=models.RegisteredJobList, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[requests.RegisteredQuery, Query()]) -> Response:
    """List the entries, in the order of their names."""
    return answer(request, models.RegisteredJobList.of(await list_registered_jobs(asked.enabled_only)))


@router.get("/{name}", response_model=models.RegisteredJobAnswer, responses=told(404) | UNCHANGED)
async def get(request: Request, name: Name, _: Viewer) -> Response:
    """Show an entry."""
    return answer(request, models.RegisteredJobAnswer.of(await the_entry(name)))


async def the_entry(name: str) -> RegisteredJob:
    """The entry of this name."""
    entry = await get_registered_job(name)
    if entry is None:
        raise NotFound(what="registered job", field="name", value=shorten(name), hint="")
    return entry


@router.put("/{name}", response_model=models.RegisteredJobAnswer, responses=told(400, 409))
async def register(request: Request, name: Name, body: requests.RegisterJob, who: Author) -> Response:
    """Add an entry, or make an old one what this says. Repeating it changes nothing."""
    check_name(name, "Job name")
    given = body.model_dump(exclude_none=True)
    async with who.changes("register", f"registered job {name}"), from_outside(given.pop("entrypoint")) as entrypoint:
        entry = await upsert_registered_job(name, entrypoint, **given)
    return answer(request, models.RegisteredJobAnswer.of(entry))


@router.post("/{name}/enable", response_model=models.RegisteredJobAnswer, responses=told(404, 409))
async def enable(request: Request, name: Name, who: Operator) -> Response:
    """Let an entry fire from now on; what it missed is not made up for."""
    check_name(name, "Job name")
    async with who.changes("enable", f"registered job {name}"):
        entry = await enable_job(name)
    return answer(request, models.RegisteredJobAnswer.of(entry))


@router.post("/{name}/disable", response_model=models.RegisteredJobAnswer, responses=told(404))
async def disable(request: Request, name: Name, who: Operator) -> Response:
    """Let an entry fire no more; runs that have begun go on."""
    check_name(name, "Job name")
    async with who.changes("disable", f"registered job {name}"):
        entry = await disable_job(name)
    return answer(request, models.RegisteredJobAnswer.of(entry))


@router.post("/{name}/run", status_code=201, response_model=models.JobAnswer, responses=told(400, 404, 409) | AGAIN)
async def run(
    request: Request, name: Name, who: Operator, body: requests.RunRegistered, idempotency_key: Key = None
) -> Response:
    """Run an entry now; what it runs was decided when it was registered."""
    check_name(name, "Job name")
    key = given_key(body.key, idempotency_key)
    async with who.changes("run", f"registered job {name}") as change:
        entry = await the_entry(name)
        async with already_trusted(entry.entrypoint):
            job = await run_job(
                name,
                None,
                body.kwargs,
                body.preservation_mode,
                key=key,
                priority=body.priority,
                timeout_s=body.timeout_s,
            )
        change.target = f"job {job.id}"
    return submitted(request, job)
