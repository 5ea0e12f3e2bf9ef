"""Nodes over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BeforeValidator

from aaiclick.orchestration.nodes import list_nodes
from aaiclick.orchestration.rules.validation import NAME_LENGTH_MAX
from aaiclick.representations.nodes import NodeAnswer, NodePage, NodeRemoved, node_answer, node_page
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Operator, Viewer
from aaiclick.server.lookups import the_node
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer
from aaiclick.server.transport.encoded_slashes import with_slashes

router = APIRouter(prefix="/nodes", tags=["nodes"])

Name = Annotated[
    str, BeforeValidator(with_slashes), Path(min_length=1, max_length=NAME_LENGTH_MAX, description="The node's name.")
]


@router.get("", response_model=NodePage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.NodesQuery, Query()]) -> Response:
    """List the machines that run tasks, in the order of their names, also dead ones."""
    which = {"status": asked.status, "pool": asked.pool, "after": asked.after}
    return answer(request, node_page(await list_nodes(asked.state, asked.limit, **which), asked.limit))


@router.get("/{name}", response_model=NodeAnswer, responses=told(404) | UNCHANGED)
async def get(request: Request, name: Name, _: Viewer) -> Response:
    """Show a node."""
    return answer(request, node_answer(await the_node(name)))


@router.post("/{name}/cordon", response_model=NodeAnswer, responses=told(404))
async def cordon(request: Request, name: Name, who: Operator) -> Response:
    """Let the workers of a node claim no more tasks; what they run goes on, and they stay."""
    return answer(request, await changes.cordon_node(who, name))


@router.post("/{name}/uncordon", response_model=NodeAnswer, responses=told(404))
async def uncordon(request: Request, name: Name, who: Operator) -> Response:
    """Let the workers of a node claim tasks again."""
    return answer(request, await changes.uncordon_node(who, name))


@router.post("/{name}/drain", response_model=NodeAnswer, responses=told(404))
async def drain(request: Request, name: Name, who: Operator) -> Response:
    """Ask the workers of a node to claim no more tasks, to finish what they run, and to leave."""
    return answer(request, await changes.drain_node(who, name))


@router.post("/{name}/remove", response_model=NodeRemoved, responses=told(400, 404, 409))
async def remove(request: Request, name: Name, body: request_models.RemoveNode, who: Operator) -> Response:
    """Forget a node that is gone; what its workers still held is given to others."""
    return answer(request, await changes.remove_node(who, name, body))
