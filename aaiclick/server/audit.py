"""Who changed what, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from aaiclick.orchestration.audit import list_audit
from aaiclick.representations.audit import AuditPage, audit_page
from aaiclick.server import requests
from aaiclick.server.answers import answer
from aaiclick.server.documents import UNCHANGED, told
from aaiclick.server.who import Admin

router = APIRouter(prefix="/audit", tags=["audit"])


@router.get("", response_model=AuditPage, responses=told() | UNCHANGED)
async def list_(request: Request, _: Admin, asked: Annotated[requests.PageQuery, Query()]) -> Response:
    """List what was changed from outside, the newest first."""
    before = None if asked.before is None else int(asked.before)
    return answer(request, audit_page(await list_audit(before, asked.limit), asked.limit))
