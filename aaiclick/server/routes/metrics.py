"""The numbers that monitoring asks for, where it looks for them."""

from __future__ import annotations

from fastapi import APIRouter, Response

from aaiclick.orchestration.queries.metrics import CONTENT_TYPE, render_metrics
from aaiclick.server.auth.actors import Viewer
from aaiclick.server.openapi import told

router = APIRouter(tags=["metrics"])

_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The text format of Prometheus."}


@router.get("/metrics", response_class=Response, responses=told() | {200: _TEXT})
async def metrics(_: Viewer) -> Response:
    """Show all metrics, in the text format of Prometheus."""
    return Response(await render_metrics(), headers={"Content-Type": CONTENT_TYPE})
