"""What went wrong, as RFC 9457 says it: one body for every error of the tree."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from aaiclick import errors
from aaiclick.orchestration.rules.validation import escape_for_terminal, mask_secrets, shown
from aaiclick.server.transport.query_strings import SEE

MEDIA_TYPE = "application/problem+json"

STATUS: dict[type[errors.AaiclickError], int] = {
    errors.AaiclickError: 500,
    errors.InputError: 422,
    errors.NotFound: 404,
    errors.ObjectNotFound: 404,
    errors.Conflict: 409,
    errors.ClaimLost: 409,
    errors.NotAuthenticated: 401,
    errors.NotAllowed: 403,
    errors.ValueNotPortable: 422,
    errors.ValueTooLarge: 413,
    errors.ValueExposed: 422,
    errors.GraphError: 422,
    errors.TooManyTasks: 422,
    errors.EntrypointError: 422,
    errors.DataRefused: 422,
    errors.BackendUnreachable: 503,
    errors.DatabaseFileError: 503,
    errors.SchemaError: 503,
    errors.EngineUnavailable: 503,
    errors.TransientStoreError: 503,
    errors.ReplicaNotReady: 503,
    errors.NotYetHere: 412,
    errors.ReadOnlyReplica: 421,
}
"""Each error is answered as the nearest of its ancestors here."""

WAY_OUT = {404: "List what exists, as with GET /api/v1/jobs.", 422: SEE}
"""What can be done, where the error itself does not say it."""

RETRY_AFTER_S = 5

FACT_MAX = 300
"""Characters of a fact that is told by itself; `detail` tells longer ones."""

WRONG_MAX = 100
"""So many wrong fields are listed: a body of unknown fields would be answered with ten times its size."""


class WrongField(BaseModel):
    """One field that was not accepted."""

    field: str
    rule: str
    value: str | None = None


class Problem(BaseModel):
    """What went wrong, as RFC 9457 says it."""

    type: str = Field(examples=["urn:aaiclick:problem:NotFound"])
    title: str
    status: int
    code: str = Field(examples=["idempotency_conflict"], description="The kind of error, for programs.")
    detail: str
    facts: dict[str, str] | None = Field(default=None, description="The parts of `detail`, by name.")
    errors: list[WrongField] | None = None


def status_of(error: errors.AaiclickError) -> int:
    """The status that an error is answered with."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(status: int, kind: str, detail: str, more: Mapping[str, Any] | None = None) -> Response:
    """The answer that tells a problem; `kind` names it for programs."""
    body = {
        "type": f"urn:aaiclick:problem:{kind}",
        "title": _title(kind),
        "status": status,
        "code": _title(kind).lower().replace(" ", "_"),
        "detail": escape_for_terminal(mask_secrets(detail)),
        **(more or {}),
    }
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="aaiclick"'
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    return Response(json.dumps(body), status, headers, MEDIA_TYPE)


def _title(kind: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", kind).capitalize()


def problem_of(error: errors.AaiclickError) -> Response:
    """What the one tree of errors is answered with; a fault of ours tells nothing of its cause."""
    status = status_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return fault()
    way_out = WAY_OUT.get(status, "") if error.facts.get("hint") == "" else ""
    facts = _told_facts(error)
    return problem(status, type(error).__name__, f"{error} {way_out}".rstrip(), {"facts": facts} if facts else None)


def _told_facts(error: errors.AaiclickError) -> dict[str, str]:
    """Return the facts that the message of an error tells, as it tells them: what it masks is left out."""
    told = escape_for_terminal(mask_secrets(str(error)))
    named = {name for _, name, _, _ in string.Formatter().parse(type(error).__doc__ or "") if name}
    facts = {name: escape_for_terminal(mask_secrets(str(error.facts[name]))) for name in named & error.facts.keys()}
    return {name: text for name, text in sorted(facts.items()) if text and len(text) <= FACT_MAX and text in told}


def refusal(error: errors.AaiclickError | HTTPException) -> Response:
    """What somebody is refused with, by us or by the rules of HTTP."""
    if isinstance(error, errors.AaiclickError):
        return problem_of(error)
    answer = problem(error.status_code, HTTPStatus(error.status_code).phrase.replace(" ", ""), str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


def fault() -> Response:
    """A fault of ours: what it was is in the log."""
    return problem(500, "Fault", "A bug in aaiclick; the server's log tells more.")


# ---------------------------------------------------------------- for FastAPI


async def on_error(_: Request, error: Exception) -> Response:
    """An error of the tree."""
    assert isinstance(error, errors.AaiclickError)
    return problem_of(error)


async def on_http_error(_: Request, error: Exception) -> Response:
    """What the router itself refuses: an unknown path, another method."""
    assert isinstance(error, HTTPException)
    return refusal(error)


async def on_validation_error(_: Request, error: Exception) -> Response:
    """What does not have the form that was asked for: all of it is listed, within reason."""
    assert isinstance(error, RequestValidationError)
    all_of_it = error.errors()
    found = [_wrong(each) for each in all_of_it[:WRONG_MAX]]
    if any(each["type"] == "json_invalid" for each in all_of_it):
        return problem(400, "BadJson", "The body is not JSON.", {"errors": found})
    words = "; ".join(map(_line, found))
    if len(all_of_it) > WRONG_MAX:
        words += f"; and {len(all_of_it) - WRONG_MAX} more"
    return problem(422, "InputError", f"Not accepted: {words}. {SEE}", {"errors": found})


def _line(wrong: Mapping[str, str]) -> str:
    value = f" {wrong['value']}:" if "value" in wrong else ""
    return f"{wrong['field']}:{value} {wrong['rule']}"


def _wrong(found: Mapping[str, Any]) -> dict[str, Any]:
    field = _field(found["loc"])
    wrong = {"field": field, "rule": escape_for_terminal(str(found["msg"]))}
    if found["type"] not in ("missing", "json_invalid") and len(found["loc"]) > 1:
        wrong["value"] = shown(found.get("input"), field)
    return wrong


def _field(place: Sequence[Any]) -> str:
    return escape_for_terminal(".".join(str(part) for part in (place[1:] or place)))[:200]
