"""Limits the number and length of a request's query parameters and headers before anything else reads them.

Later steps may read them several times; the limits here bound the cost.
"""

from __future__ import annotations

from starlette.types import Scope

from aaiclick.errors import InputError

PATH_BYTES_MAX = 4_096
QUERY_BYTES_MAX = 8_192
PARAMETERS_MAX = 50
HEADERS_MAX = 100
HEADER_BYTES_MAX = 8_192


def check_head(scope: Scope) -> None:
    """Raise InputError if the path, the query or the headers are longer or more than any legitimate request has."""
    path, query, headers = scope.get("raw_path") or b"", scope["query_string"], scope["headers"]
    _at_most(PATH_BYTES_MAX, len(path), "bytes in the path of the address")
    _at_most(QUERY_BYTES_MAX, len(query), "bytes behind the question mark of the address")
    _at_most(PARAMETERS_MAX, query.count(b"&") + 1, "parameters in the address")
    _at_most(HEADERS_MAX, len(headers), "headers")
    _at_most(HEADER_BYTES_MAX, max((len(name) + len(value) for name, value in headers), default=0), "bytes in a header")


def _at_most(most: int, number: int, what: str) -> None:
    if number > most:
        rule = f"allowed are {most} at most"
        raise InputError(field="request", value=f"{number} {what}", rule=rule, hint="Send less in one request.")
