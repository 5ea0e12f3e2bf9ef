"""The numbers that monitoring asks for, where it looks for them."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from aaiclick.orchestration.queries.metrics import CONTENT_TYPE, render_metrics
from aaiclick.server.auth.actors import Viewer
from aaiclick.server.openapi import told
from aaiclick.server.routes.health import replica_of

router = APIRouter(tags=["metrics"])

_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The text format of Prometheus."}


@router.get("/metrics", response_class=Response, responses=told() | {200: _TEXT})
async def metrics(request: Request, _: Viewer) -> Response:
    """Show all metrics, in the text format of Prometheus; a replica shows its own."""
    replica = replica_of(request.app)
    if replica is not None:
        return Response(replica.metrics(), headers={"Content-Type": CONTENT_TYPE})
    return Response(await render_metrics(), headers={"Content-Type": CONTENT_TYPE})
