"""Remembered results over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from aaiclick.orchestration.queries.cached_results import list_cache
from aaiclick.representations.cached_results import CacheCleared, CachePage, cache_page
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Operator, Viewer
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer

router = APIRouter(prefix="/cache", tags=["cache"])


@router.get("", response_model=CachePage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.CacheQuery, Query()]) -> Response:
    """List remembered results of tasks, the newest first."""
    before = None if asked.before is None else int(asked.before)
    return answer(request, cache_page(await list_cache(asked.entrypoint, asked.limit, before=before), asked.limit))


@router.post("/clear", response_model=CacheCleared, responses=told(400, 404))
async def clear(request: Request, who: Operator, body: request_models.ClearCache | None = None) -> Response:
    """Remove remembered results: all, those of one function, or one entry. What they kept is dropped if unneeded."""
    return answer(request, await changes.clear_cache(who, body or request_models.ClearCache()))
