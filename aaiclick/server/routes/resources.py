"""Resources over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from aaiclick.orchestration.resources import list_resources
from aaiclick.orchestration.rules.validation import NAME_LENGTH_MAX
from aaiclick.representations.resources import ResourceAnswer, ResourcePage, ResourceRemoved, resource_page
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Operator, Viewer
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer

router = APIRouter(prefix="/resources", tags=["resources"])

Name = Annotated[str, Path(min_length=1, max_length=NAME_LENGTH_MAX, description="The resource's name.")]


@router.get("", response_model=ResourcePage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.ResourcesQuery, Query()]) -> Response:
    """List capacities with what is free and who holds the rest; those of the whole installation first."""
    found = await list_resources(asked.name, asked.limit, node=asked.node, after=asked.after)
    return answer(request, resource_page(found, asked.limit))


@router.put("/{name}", response_model=ResourceAnswer, responses=told(400, 404))
async def set_(request: Request, name: Name, body: request_models.SetResource, who: Operator) -> Response:
    """Set a capacity of the whole installation; it counts from the next claim on."""
    return answer(request, await changes.set_resource(who, name, body.amount))


@router.post("/{name}/remove", response_model=ResourceRemoved, responses=told(404))
async def remove(request: Request, name: Name, who: Operator) -> Response:
    """Forget a capacity of the whole installation; what runs hold of it stays theirs."""
    return answer(request, await changes.remove_resource(who, name))
