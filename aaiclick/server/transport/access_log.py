"""Masks the addresses of requests in logs: values of unknown query parameters, and everything that looks secret."""

from __future__ import annotations

import logging
from urllib.parse import unquote_plus

from pydantic import BaseModel

from aaiclick.orchestration.rules.validation import escape_for_terminal, mask_secrets
from aaiclick.server import request_models

STARS = "***"
CALLBACKS = "/callbacks/"
DECODED_MAX = 5


def _plain_names() -> frozenset[str]:
    forms = (each for each in vars(request_models).values() if isinstance(each, type) and issubclass(each, BaseModel))
    return frozenset(name for form in forms if form.__name__.endswith("Query") for name in form.model_fields)


PLAIN = _plain_names()
"""The query parameters of the server's routes: the value of any other may be a token, whatever its name."""


def shown_address(address: str) -> str:
    """Return an address, path and query, as a log may show it."""
    path, mark, query = address.partition("?")
    return shown_path(path) + mark + "&".join(map(_shown_pair, query.split("&")) if query else ())


def shown_path(path: str) -> str:
    """Return a path on one line, with secrets masked; what follows `/callbacks/` is one."""
    plain = _decoded(path)
    if CALLBACKS in plain:
        path = plain = plain.partition(CALLBACKS)[0] + CALLBACKS + STARS
    return escape_for_terminal(path if mask_secrets(plain) == plain else mask_secrets(plain))


def _shown_pair(pair: str) -> str:
    name, mark, value = pair.partition("=")
    if name in PLAIN and mask_secrets(_decoded(value)) == _decoded(value):
        return escape_for_terminal(pair)
    return escape_for_terminal(mask_secrets(_decoded(name))[:80]) + mark + (STARS if value else "")


def _decoded(text: str) -> str:
    """Decode percent-encoding repeatedly, DECODED_MAX times at most: a secret may be encoded more than once."""
    for _ in range(DECODED_MAX):
        plain = unquote_plus(text)
        if plain == text:
            break
        text = plain
    return text


class MaskAccess(logging.Filter):
    """Masks the address in uvicorn's access log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask the record's address in place, and let every record pass."""
        if isinstance(record.args, tuple) and len(record.args) == 5:
            client, method, address, *rest = record.args
            record.args = (client, method, shown_address(str(address)), *rest)
        return True


def mask_access_log() -> None:
    """Add the filter to uvicorn's access log in this process, once."""
    log = logging.getLogger("uvicorn.access")
    if not any(isinstance(each, MaskAccess) for each in log.filters):
        log.addFilter(MaskAccess())
