"""Answers as JSON, with a tag by which whoever polls learns that nothing has changed."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"


def answer(request: Request, body: BaseModel | bytes, *, status: int = 200) -> Response:
    """The body as JSON; 304 without it if the caller has the same one."""
    text = body if isinstance(body, bytes) else body.model_dump_json().encode()
    tag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
    if request.method == "GET" and status == 200 and _has(request, tag):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(text, status, {"ETag": tag}, JSON)


def _has(request: Request, tag: str) -> bool:
    given = request.headers.get("if-none-match", "")
    return given.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in given.split(","))
