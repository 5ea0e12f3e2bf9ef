"""Refuses unknown and repeated query parameters.

Otherwise `POST /tasks/1/clear?dry_run=true` would clear the task, as `dry_run` is a field of the body.
"""

from __future__ import annotations

from starlette.requests import Request

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import shorten, shown

SEE = "/api/v1/openapi.json lists what is accepted."


def check_query(request: Request) -> None:
    """Raise InputError for a repeated parameter, or for any if the route takes none.

    Routes that take parameters refuse unknown ones themselves.
    """
    given = request.query_params
    seen: dict[str, str] = {}
    for name, value in given.multi_items():
        if name in seen:
            both = shown([seen[name], value], name)
            raise InputError(field=shorten(name), value=both, rule="it is given twice", hint="Give it once.")
        seen[name] = value
    if given and not _takes_any(request):
        name, value = next(iter(given.items()))
        rule = "this route takes no query parameters"
        raise InputError(field=shorten(name), value=shown(value, name), rule=rule, hint=SEE)


def _takes_any(request: Request) -> bool:
    dependant = getattr(request.scope.get("route"), "dependant", None)
    return dependant is None or bool(dependant.query_params)
