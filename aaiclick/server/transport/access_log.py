"""What the log says of a request: where it went, and of what it brought only what is certainly no secret."""

from __future__ import annotations

import logging
from urllib.parse import unquote_plus

from pydantic import BaseModel

from aaiclick.orchestration.rules.validation import escape_for_terminal, mask_secrets
from aaiclick.server import request_models

STARS = "***"
DECODED_MAX = 5


def _plain_names() -> frozenset[str]:
    forms = (each for each in vars(request_models).values() if isinstance(each, type) and issubclass(each, BaseModel))
    return frozenset(name for form in forms if form.__name__.endswith("Query") for name in form.model_fields)


PLAIN = _plain_names()
"""Parameters that are ours: what another one holds may be a token, however its name is written."""


def shown_address(address: str) -> str:
    """An address as a log may show it."""
    path, mark, query = address.partition("?")
    return shown_path(path) + mark + "&".join(map(_shown_pair, query.split("&")) if query else ())


def shown_path(path: str) -> str:
    """A path without what looks like a secret, on one line."""
    plain = _decoded(path)
    return escape_for_terminal(path if mask_secrets(plain) == plain else mask_secrets(plain))


def _shown_pair(pair: str) -> str:
    name, mark, value = pair.partition("=")
    if name in PLAIN and mask_secrets(_decoded(value)) == _decoded(value):
        return escape_for_terminal(pair)
    return escape_for_terminal(mask_secrets(_decoded(name))[:80]) + mark + (STARS if value else "")


def _decoded(text: str) -> str:
    """However often it was encoded."""
    for _ in range(DECODED_MAX):
        plain = unquote_plus(text)
        if plain == text:
            break
        text = plain
    return text


class MaskAccess(logging.Filter):
    """Masks the address in uvicorn's lines about requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, with another address."""
        if isinstance(record.args, tuple) and len(record.args) == 5:
            client, method, address, *rest = record.args
            record.args = (client, method, shown_address(str(address)), *rest)
        return True


def mask_access_log() -> None:
    """From now on, in this process."""
    log = logging.getLogger("uvicorn.access")
    if not any(isinstance(each, MaskAccess) for each in log.filters):
        log.addFilter(MaskAccess())
