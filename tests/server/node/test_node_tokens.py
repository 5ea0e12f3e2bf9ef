"""Tokens of workers are looked at every second, not at each call."""

from __future__ import annotations

import pytest

from aaiclick.errors import NotAuthenticated
from aaiclick.orchestration.access.tokens import authenticate, create_token, revoke_token
from aaiclick.server.node import node_tokens
from aaiclick.server.node.node_tokens import TRUSTED_S, NodeTokens
from tests.support.clocks import HandClock
from tests.support.front_door import local

__all__ = ["local"]


async def test_a_token_is_looked_at_again_after_a_second(local: object, monkeypatch: pytest.MonkeyPatch) -> None:
    made, clock = await create_token("w", "worker"), HandClock()
    looks: list[str] = []

    async def counted(text: str) -> object:
        looks.append(text)
        return await authenticate(text)

    monkeypatch.setattr(node_tokens, "authenticate", counted)
    tokens = NodeTokens(clock)
    for _ in range(3):
        assert (await tokens.of(made.text)).id == made.token.id
    assert len(looks) == 1
    await revoke_token(made.token.id)
    assert await tokens.of(made.text)
    clock.now += TRUSTED_S
    for _ in range(2):
        with pytest.raises(NotAuthenticated, match="revoked"):
            await tokens.of(made.text)
    assert len(looks) == 3


async def test_what_is_no_token_is_not_remembered(local: object) -> None:
    tokens = NodeTokens()
    with pytest.raises(NotAuthenticated):
        await tokens.of("x")
    assert not tokens._known
