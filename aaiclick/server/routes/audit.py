"""Who changed what, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from aaiclick.orchestration.access.audit import list_audit
from aaiclick.representations.access.audit import AuditPage, audit_page
from aaiclick.server import request_models
from aaiclick.server.auth.actors import Admin
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer

router = APIRouter(prefix="/audit", tags=["audit"])


@router.get("", response_model=AuditPage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Admin, asked: Annotated[request_models.PageQuery, Query()]) -> Response:
    """List changes made from outside, newest first."""
    before = None if asked.before is None else int(asked.before)
    return answer(request, audit_page(await list_audit(before, asked.limit), asked.limit))
