"""Tokens: who may ask the server. Only commands make and list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, Time, facts_of

if TYPE_CHECKING:
    from aaiclick.orchestration.models.token import Token


class TokenAnswer(TypedDict):
    """A token without its secret, which is not stored."""

    id: Id
    name: str
    role: str
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None
    last_used_at: Time | None
    node_id: Id | None
    pool: str | None
    uses_left: int | None


class NewToken(TokenAnswer):
    """A newly created token, with its text."""

    token: str


class TokenList(TypedDict):
    """All tokens, newest first."""

    tokens: list[TokenAnswer]


def new_token(token: Token, text: str) -> NewToken:
    """Return a token with its text."""
    return facts_of(NewToken, token, token=text)


def token_list(tokens: Sequence[Token]) -> TokenList:
    """Return all tokens."""
    return TokenList(tokens=[facts_of(TokenAnswer, token) for token in tokens])
