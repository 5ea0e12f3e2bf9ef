"""Tokens: shown once, kept as a digest, counted until they expire or are revoked."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from sqlalchemy import select, update

from aaiclick.errors import InputError, NotAuthenticated, NotFound
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.access.tokens import (
    authenticate,
    create_token,
    has_valid_token,
    list_tokens,
    revoke_token,
    still_counts,
)
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.definitions.access_tables import audit, tokens
from aaiclick.orchestration.store.session import Session
from tests.support.front_door import local, state
from tests.support.orchestra import LONG_AGO

__all__ = ["local", "state"]


async def change(**values: Any) -> None:
    async with connected() as database:
        await database.transact(lambda session: session.run(update(tokens).values(**values)))


async def test_a_token_opens_the_door_and_its_use_is_noted(state: str) -> None:
    made = await create_token("dashboard", "OPERATOR")
    assert made.text.startswith(f"aai_{made.token.id}_")
    found = await authenticate(made.text)
    assert (found.id, found.name, found.role) == (made.token.id, "dashboard", Role.OPERATOR)
    (listed,) = await list_tokens()
    assert listed.last_used_at is not None
    await authenticate(made.text)
    assert (await list_tokens())[0].last_used_at == listed.last_used_at  # once a minute is enough


async def test_the_secret_is_in_no_table(state: str) -> None:
    made = await create_token("dashboard")
    secret = made.text.split("_", 2)[2]  # the secret may have such a stroke, too
    async with connected() as database:
        for table in (tokens, audit):
            rows = await database.read(partial(Session.rows, statement=select(table)))
            assert rows
            assert secret not in str(rows)


@pytest.mark.parametrize(
    "wrong", ["", "x", "aai_1_x", "aai_0_" + "a" * 43, f"aai_{2**63}_" + "a" * 43, "aai_٣_" + "a" * 43]
)
async def test_what_is_no_token_is_refused(local: None, wrong: str) -> None:
    with pytest.raises(NotAuthenticated, match="not a token of this server"):
        await authenticate(wrong)


async def test_a_wrong_secret_is_refused_like_an_unknown_token(state: str) -> None:
    made = await create_token("dashboard")
    with pytest.raises(NotAuthenticated, match="not a token of this server"):
        await authenticate(f"aai_{made.token.id}_" + "a" * 43)
    with pytest.raises(NotAuthenticated, match="not a token of this server"):
        await authenticate("aai_12345_" + "a" * 43)


async def test_an_expired_token_counts_no_more(state: str) -> None:
    made = await create_token("for a day", lives_s=86400)
    assert made.token.expires_at is not None
    assert await authenticate(made.text)
    await change(expires_at=LONG_AGO)
    with pytest.raises(NotAuthenticated, match="expired"):
        await authenticate(made.text)
    assert not await has_valid_token()


async def test_a_revoked_token_counts_no_more(state: str) -> None:
    assert not await has_valid_token()
    made = await create_token("leaver")
    assert await has_valid_token()
    assert await revoke_token(made.token.id) is True
    assert await revoke_token(made.token.id) is False
    with pytest.raises(NotAuthenticated, match="revoked"):
        await authenticate(made.text)
    assert not await has_valid_token()
    with pytest.raises(NotFound):
        await revoke_token(12345)


async def test_making_and_revoking_is_written_down(state: str) -> None:
    made = await create_token("leaver")
    await revoke_token(made.token.id, actor="root")
    newest, oldest = await list_audit()
    assert (newest.verb, newest.actor, newest.target) == ("revoke", "root", f"token {made.token.id}")
    assert (oldest.verb, oldest.actor, oldest.outcome) == ("create", "command line", "done")


@pytest.mark.parametrize(
    ("name", "role", "lives_s", "match"),
    [
        ("", "viewer", None, "Token name"),
        ("x", "amdin", None, "Did you mean admin"),
        ("x", "viewer", 0, "lives_s"),
        ("x", "viewer", float("inf"), "lives_s"),
        ("x", "viewer", True, "lives_s"),
    ],
)
async def test_what_cannot_be_made_is_refused(local: None, name: str, role: str, lives_s: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        await create_token(name, role, lives_s=lives_s)
    assert await list_tokens() == []


async def test_whoever_is_inside_is_asked_again_whether_they_may(state: str) -> None:
    first, second = await create_token("first"), await create_token("second")
    assert await still_counts(first.token.id)
    assert await revoke_token(first.token.id)
    assert not await revoke_token(first.token.id)
    assert not await still_counts(first.token.id)
    assert await still_counts(second.token.id)
    await change(expires_at=LONG_AGO)
    assert not await still_counts(second.token.id)
    assert not await still_counts(12345)
    told = [entry.outcome for entry in await list_audit() if entry.verb == "revoke"]
    assert told == ["nothing: it was revoked before", "done"]
