"""The document of the interface (OpenAPI): every answer of every route is in it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from aaiclick import __version__
from aaiclick.server.problems import MEDIA_TYPE, Problem

WHY = {
    400: "The body is not JSON.",
    401: "There is no token, or an invalid one.",
    403: "The token's role does not allow this, or the Host or Origin is foreign.",
    404: "It does not exist.",
    409: "It cannot be done in the current state.",
    412: "The event in `min_seq` is not here, or did not come in time.",
    413: "The body, or the arguments in it, are too large.",
    421: "A replica only reads: ask the coordinator, whose address is in `facts`.",
    422: "Some of the input is not accepted; each fault is listed.",
    429: "The token has too many requests under way; try again later.",
    500: "A bug in aaiclick.",
    503: "A database cannot be reached or used now.",
}

ANYWHERE = (401, 403, 412, 413, 421, 422, 429, 500, 503)

ABOUT = (
    "Durable, distributed data workflows. Every GET takes `min_seq`, the id of an event that its answer is to include. "
    "Answers to changes, and all answers of replicas from their copies, have the newest event in `Aaiclick-As-Of-Seq`."
)

Responses = dict[int | str, dict[str, Any]]


def told(*statuses: int) -> Responses:
    """The problems that a route may answer with: those of every route, and these."""
    return {status: problem_response(status) for status in sorted({*ANYWHERE, *statuses})}


def problem_response(status: int) -> dict[str, Any]:
    """How a problem is written in the document."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": WHY.get(status, HTTPStatus(status).phrase), "content": content}


UNCHANGED: Responses = {304: {"description": "Nothing has changed since the answer with that ETag."}}


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(title="aaiclick", version=__version__, description=ABOUT, routes=app.routes)
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own form, which is never used here
            schemas.pop(name, None)
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(problem.pop("$defs", {}))
        schemas["Problem"] = problem
        app.openapi_schema = made
    return app.openapi_schema
