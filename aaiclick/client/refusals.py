"""What a server refuses, as the same errors that are raised where the database is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aaiclick import errors
from aaiclick.errors import AaiclickError

BY_STATUS: dict[int, type[AaiclickError]] = {
    400: errors.InputError,
    401: errors.NotAuthenticated,
    403: errors.NotAllowed,
    404: errors.NotFound,
    405: errors.InputError,
    409: errors.Conflict,
    413: errors.ValueTooLarge,
    422: errors.InputError,
    429: errors.ServerBusy,
    503: errors.ServerBusy,
}
"""What stands for problems whose type is no class of `aaiclick.errors` here."""

SHOWN_MAX = 300


def error_of(status: int, body: bytes, url: str) -> AaiclickError:
    """Return the error that an answer tells. Its `status` and `url` say what was answered, and by whom."""
    told = _problem(body)
    where: dict[str, Any] = {"status": status, "url": url}
    if told is None:
        return _no_server_of_ours("problem document", status, body, url)
    detail = str(told.get("detail") or told.get("title") or f"It answered {status}.")
    kind = _kind(str(told.get("type", "")).rpartition(":")[2]) or BY_STATUS.get(status)
    if kind is None or (status >= 500 and kind in (AaiclickError, errors.ServerFault)):
        return errors.ServerFault(cause=detail, hint="", **where)
    if kind is errors.ServerBusy:
        return errors.ServerBusy(cause=detail, **where)
    facts = {name: text for name, text in _facts(told).items() if name in _named_by(kind)}
    return kind.retold(detail, **(facts | where | {"errors": told.get("errors") or []}))


def data_of(status: int, body: bytes, url: str) -> dict[str, Any]:
    """Return the data of an answer of success; raise ServerFault if it is none of ours, as of another server's page."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise _no_server_of_ours("JSON object", status, body, url)
    return told


def _no_server_of_ours(wanted: str, status: int, body: bytes, url: str) -> errors.ServerFault:
    cause = f"it answered {status} with what is no {wanted}: {_start_of(body)}"
    hint = "Check that the address is that of an aaiclick server."
    return errors.ServerFault(cause=cause, hint=hint, status=status, url=url)


def _problem(body: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):  # also what is no UTF-8
        return None
    return told if isinstance(told, dict) and ("detail" in told or "title" in told) else None


def _kind(name: str) -> type[AaiclickError] | None:
    found = vars(errors).get(name)
    return found if isinstance(found, type) and issubclass(found, AaiclickError) else None


def _facts(told: Mapping[str, Any]) -> dict[str, Any]:
    facts = told.get("facts")
    return facts if isinstance(facts, dict) else {}


def _named_by(kind: type[AaiclickError]) -> set[str]:
    """Return the names of the facts that an error of this kind has: no others become attributes."""
    return {name for each in kind.__mro__ for name in re.findall(r"{(\w+)", each.__doc__ or "")} - {"args", "facts"}


def _start_of(body: bytes) -> str:
    return ascii(body[:SHOWN_MAX].decode(errors="replace")) if body else "nothing"
