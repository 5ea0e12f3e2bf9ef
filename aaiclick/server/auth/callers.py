"""Who asks: tokens are looked up in the database, or, by a replica, at its coordinator."""

from __future__ import annotations

from typing import Protocol

from aaiclick.orchestration.access.tokens import authenticate, still_counts
from aaiclick.orchestration.models.token import Token


class Callers(Protocol):
    """Knows tokens."""

    async def authenticate(self, text: str) -> Token:
        """Return the token that has this text; raise NotAuthenticated if it is unknown, expired or revoked."""

    async def still_counts(self, token_id: int) -> bool:
        """Return whether a token that was accepted before is still valid."""


class KnownCallers:
    """The tokens in the database."""

    async def authenticate(self, text: str) -> Token:
        return await authenticate(text)

    async def still_counts(self, token_id: int) -> bool:
        return await still_counts(token_id)
