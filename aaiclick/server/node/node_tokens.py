"""The tokens of workers: looked at again every second, not at each call."""

from __future__ import annotations

import hashlib

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.orchestration.access.tokens import authenticate
from aaiclick.orchestration.models.token import Token

TRUSTED_S = 1.0
"""Seconds for which a token is trusted without a look: one that was revoked is refused before the next heartbeat."""

KNOWN_MAX = 10_000


class NodeTokens:
    """The tokens that one server has looked at lately, by the digest of their text."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._known: dict[bytes, tuple[Token, float]] = {}

    async def of(self, text: str) -> Token:
        """Return the token that has this text; raise NotAuthenticated if it is unknown, expired or revoked."""
        digest = hashlib.sha256(text.encode()).digest()
        known = self._known.get(digest)
        began = self._clock.monotonic()
        if known is not None and began - known[1] < TRUSTED_S:
            return known[0]
        self._known.pop(digest, None)
        token = await authenticate(text)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[digest] = token, began
        return token
