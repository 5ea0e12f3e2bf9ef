"""Ids over HTTP: found by their last digits, as people type them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response

from aaiclick.orchestration.queries.short_ids import find_id
from aaiclick.representations.ids import FoundId
from aaiclick.server.auth.actors import Viewer
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer

router = APIRouter(prefix="/ids", tags=["ids"])

Ending = Annotated[str, Path(pattern="^[0-9]{1,19}$", description="An id, or at least its last four digits.")]


@router.get("/{kind}/{ending}", response_model=FoundId, responses=told(404) | UNCHANGED)
async def find(
    request: Request, kind: Literal["backfill", "job", "task", "worker"], ending: Ending, _: Viewer
) -> Response:
    """Find the id that equals these digits, or is the only one that ends with them."""
    return answer(request, FoundId(id=str(await find_id(kind, ending))))
