"""Tokens of nodes: exchanged for tokens for joining, once for each answer that was lost, and renewed in time."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from aaiclick.errors import Conflict, InputError, NotAllowed, NotAuthenticated
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.access.node_tokens import GRACE_S, LIVES_S, is_due, join, renew
from aaiclick.orchestration.access.tokens import authenticate, create_token, list_tokens, revoke_token, text_of
from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.access import tokens as store
from aaiclick.orchestration.store.definitions.access_tables import tokens
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.session import Session
from tests.support.front_door import local, state

__all__ = ["local", "state"]

NODE = NodeDescription("n1", "said")


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


async def for_joining(**options: Any) -> Token:
    return (await create_token("j", "join", **options)).token


async def age(token: Token, seconds: float) -> None:
    """Let a token be older than it is."""
    past = timedelta(seconds=seconds)
    assert token.expires_at is not None
    values = {"created_at": token.created_at - past, "expires_at": token.expires_at - past}
    async with connected() as database:
        await database.transact(
            lambda session: session.run(update(tokens).where(tokens.c.id == token.id).values(values))
        )


async def fresh(token: Token) -> Token:
    return next(each for each in await list_tokens() if each.id == token.id)


async def test_a_token_for_joining_becomes_that_of_a_node(state: str) -> None:
    with_token = await for_joining(pool="gpu")
    made = await join(with_token, NODE, digest("s" * 43))
    assert (made.role, made.name, made.pool, made.joined_with) == ("worker", "n1", "gpu", with_token.id)
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).total_seconds() == LIVES_S
    assert (await authenticate(text_of(made.id, "s" * 43))).node_id == made.node_id
    async with connected() as database:
        row = await database.read(lambda session: session.first(select(nodes).where(nodes.c.id == made.node_id)))
    assert row is not None
    assert (row.name, row.pool) == ("n1", "gpu")
    assert {(entry.verb, entry.actor) for entry in await list_audit()} >= {("join", "j")}


async def test_a_lost_answer_costs_no_second_use(state: str) -> None:
    with_token = await for_joining(uses=2)
    asked = [join(with_token, NODE, digest("a")) for _ in range(3)]
    assert len({made.id for made in await asyncio.gather(*asked)}) == 1
    assert (await fresh(with_token)).uses_left == 1
    await join(with_token, NodeDescription("n2"), digest("b"))
    with pytest.raises(NotAllowed, match="used up"):
        await join(with_token, NodeDescription("n3"), digest("c"))


async def test_uses_are_counted_by_whoever_joins_at_once(state: str) -> None:
    with_token = await for_joining(uses=2)
    asked = [join(with_token, NodeDescription(f"n{number}"), digest(str(number))) for number in range(4)]
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert sorted(type(each).__name__ for each in found) == ["NotAllowed", "NotAllowed", "Token", "Token"]


async def test_nobody_joins_as_a_node_of_others(local: object) -> None:
    mine, theirs = await for_joining(uses=3), await for_joining(uses=3)
    first = await join(mine, NODE, digest("a"))
    with pytest.raises(Conflict, match="not made with this one"):
        await join(theirs, NODE, digest("b"))
    assert (await join(mine, NODE, digest("c"))).node_id == first.node_id  # it has lost its file
    await revoke_token(first.id)
    await join(theirs, NODE, digest("d"))


async def test_a_token_is_renewed_from_half_of_its_life_on(state: str) -> None:
    old = await join(await for_joining(), NODE, digest("a"))
    assert await renew(old, digest("b")) is None
    await age(old, LIVES_S / 2)
    made = [await renew(await fresh(old), digest("b")) for _ in range(2)]
    assert made[0] is not None
    assert made[0] == made[1]
    assert (made[0].node_id, made[0].pool, made[0].joined_with) == (old.node_id, old.pool, old.joined_with)
    left = (await fresh(old)).expires_at
    assert left is not None
    assert made[0].expires_at is not None
    assert made[0].expires_at - left > timedelta(seconds=LIVES_S - GRACE_S - 60)
    assert left - made[0].created_at <= timedelta(seconds=GRACE_S + 60)


async def test_what_has_no_end_is_not_renewed(local: object) -> None:
    made = (await create_token("w", "worker")).token
    assert made.node_id is not None
    assert not is_due(made, made.created_at + timedelta(days=9999))
    assert await renew(made, digest("b")) is None


async def test_with_one_token_of_a_node_all_are_revoked_and_its_sessions_end(state: str) -> None:
    """A thief may have renewed it."""
    old = await join(await for_joining(), NODE, digest("a" * 43))
    await age(old, LIVES_S / 2)
    stolen = await renew(await fresh(old), digest("t" * 43))
    assert stolen is not None
    async with coordinated() as coordinator:
        worker = await coordinator.register(hostname="h", pid=1, node=NODE)
        other = await coordinator.register(hostname="h", pid=2, node=NodeDescription("other"))
        assert await revoke_token(old.id)
        assert not (await coordinator.beat(worker.id)).alive
        assert (await coordinator.beat(other.id)).alive
    for token, secret in ((old, "a" * 43), (stolen, "t" * 43)):
        with pytest.raises(NotAuthenticated, match="revoked"):
            await authenticate(text_of(token.id, secret))
    assert await renew(stolen, digest("again")) is None
    assert not await revoke_token(stolen.id)


@pytest.mark.parametrize("wrong", ["", "x" * 64, "A" * 64, "a" * 63, "a" * 65])
async def test_what_is_no_digest_is_refused(local: object, wrong: str) -> None:
    made = (await create_token("w", "worker")).token
    for asked in (join(made, NODE, wrong), renew(made, wrong)):
        with pytest.raises(InputError, match="SHA-256"):
            await asked


ODD = [("viewer", "uses", 1), ("admin", "pool", "p"), ("join", "node", "n"), ("join", "uses", 0), ("worker", "uses", 2)]


@pytest.mark.parametrize(("role", "option", "value"), ODD)
async def test_each_role_has_its_own_bounds(local: object, role: str, option: str, value: Any) -> None:
    with pytest.raises(InputError, match="only for the role"):
        await create_token("t", role, **{option: value})


async def test_a_token_for_joining_lives_an_hour_and_is_used_once_unless_told_otherwise(local: object) -> None:
    made = await for_joining()
    assert made.expires_at is not None
    assert ((made.expires_at - made.created_at).total_seconds(), made.uses_left) == (3600, 1)


async def test_a_token_that_is_made_while_its_node_is_shut_out_goes_too(state: str) -> None:
    """The revocation waits for the renewal, and must see then what that has made."""
    old = await join(await for_joining(), NODE, digest("a"))
    revoking: asyncio.Task[bool] | None = None

    async def renewing(session: Session) -> Token:
        nonlocal revoking
        await store.lock_token(session, old.id)
        bounds = store.Bounds(node_id=old.node_id)
        made = await store.add_token(
            session, name="n1", role=Role.WORKER, digest=digest("b"), lives_s=LIVES_S, bounds=bounds
        )
        revoking = revoking or asyncio.create_task(revoke_token(old.id))
        await asyncio.wait({revoking}, timeout=0.5)  # it waits for this transaction, or has not begun
        return made

    async with connected() as database:
        made = await database.transact(renewing)
    assert revoking is not None
    assert await revoking
    assert (await fresh(made)).revoked_at is not None


async def test_a_token_for_joining_that_was_just_revoked_joins_nobody(state: str) -> None:
    """A server trusts a token for a second without a look."""
    with_token = await for_joining(uses=5)
    await revoke_token(with_token.id)
    with pytest.raises(NotAuthenticated, match="revoked"):
        await join(with_token, NODE, digest("a"))
    assert [token.role for token in await list_tokens()] == ["join"]
