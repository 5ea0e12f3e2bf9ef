"""Callbacks: what others send to tasks that wait for it, with a token that each task gives them."""

from __future__ import annotations

import hashlib
import secrets

from aaiclick.errors import Conflict, NotFound, ValueNotPortable
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.validation import is_storable
from aaiclick.orchestration.store.access.callbacks import Received
from aaiclick.orchestration.store.access.callbacks import receive_callback as store_callback

TOKEN_BYTES = 32
TOKEN_LENGTH = 43
"""The characters of a token: 32 random bytes in base64 without padding."""


def new_token() -> tuple[str, str]:
    """Return a new token, and its digest."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return token, digest_of(token)


def digest_of(token: str) -> str:
    """Return what is stored of a token. It has 256 random bits, so that no slow digest is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


async def receive_callback(token: str, body: str) -> bool:
    """Hand the body to the task that waits for it. Return False if the same was received before.

    Raises NotFound if no task waits for it, and Conflict if another body was received before.
    """
    if not is_storable(body):
        raise ValueNotPortable(path="The body", value="a text", rule="it has NUL or lone surrogates", hint="")
    async with connected() as database:
        received = await database.transact(lambda session: store_callback(session, digest_of(token), body))
    if received is Received.UNKNOWN:
        hint = "The task has ended, was cleared, or never gave this token."
        raise NotFound(what="callback", field="token", value="***", hint=hint)
    if received is Received.USED:
        cause = "this token was used before, with another body"
        raise Conflict(what="The callback", verb="accepted", cause=cause, hint="Each token counts once.")
    return received is Received.STORED
