"""Answers as JSON, with a tag by which whoever polls learns that nothing has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json as encoded
from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"


def to_json(body: Mapping[str, Any]) -> bytes:
    """Return a representation as JSON, in UTF-8. Nothing is checked: that would take long for many rows."""
    return encoded(body, inf_nan_mode="null")


def answer(
    request: Request, body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The body as JSON; 304 without it if the caller has the same one."""
    text = to_json(body)
    tag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
    if request.method == "GET" and status == 200 and _has(request, tag):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(text, status, {"ETag": tag, **(headers or {})}, JSON)


def _has(request: Request, tag: str) -> bool:
    given = request.headers.get("if-none-match", "")
    return given.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in given.split(","))
