"""Tokens of nodes: given for one for joining, and renewed before they expire.

The node makes the secret and sends its digest: a call that is repeated, because its answer was lost, finds the same
token. Nobody but the node ever has the secret.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from aaiclick.errors import Conflict, InputError, NotAllowed, NotAuthenticated
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.access import audit
from aaiclick.orchestration.store.access import tokens as store
from aaiclick.orchestration.store.access.tokens import Bounds
from aaiclick.orchestration.store.nodes.registration import register_node
from aaiclick.orchestration.store.session import Session

LIVES_S = 24 * 3600.0
"""The life of a node's token."""

GRACE_S = 3600.0
"""For how long the old token counts after it was renewed: others of the node may not have heard of it."""

MAKE_ONE = "Make another, with: aaiclick token create NAME --role join"

RENEWED_FROM = 0.5
"""The part of its life after which a token may be renewed; workers ask at two thirds."""


async def join(with_token: Token, node: NodeDescription, digest: str) -> Token:
    """Exchange a token for joining for one of this node, whose secret has this digest.

    Raise NotAuthenticated if it was revoked, NotAllowed if it is used up, Conflict if the node has tokens that were not
    made with the same one: with those it could see what that node runs.
    """
    _check_digest(digest)
    said = node if with_token.pool is None else replace(node, pool=with_token.pool)

    async def work(session: Session) -> Token:
        registered = await register_node(session, said)
        locked = await store.lock_token(session, with_token.id)
        if locked is None or locked.revoked_at is not None:  # since the server has looked at it
            raise NotAuthenticated(cause="it was revoked", hint=MAKE_ONE)
        known = await store.token_of(session, digest)
        if known is not None and known.joined_with == with_token.id:
            return known
        for other in await store.valid_of_node(session, registered.id):
            if other.joined_with != with_token.id:
                raise Conflict(
                    what=f"Node {said.name}",
                    verb="joined",
                    cause=f"it has token {other.id}, which was not made with this one",
                    hint="Revoke that one, or choose another --node-name.",
                )
        if not await store.take_use(session, with_token.id):
            raise NotAllowed(what="Joining", cause="this token is used up", hint=MAKE_ONE)
        bounds = Bounds(node_id=registered.id, pool=with_token.pool, joined_with=with_token.id)
        facts = {"name": said.name, "role": Role.WORKER, "digest": digest, "lives_s": LIVES_S, "bounds": bounds}
        made = await store.add_token(session, **facts)  # type: ignore[arg-type]
        await _note(session, with_token, "join", made)
        return made

    async with connected() as database:
        return await database.transact(work)


async def renew(old: Token, digest: str) -> Token | None:
    """Return a new token of the same node, whose secret has this digest; the old one counts for another hour.

    None: it is too early, or the old one does not expire.
    """
    _check_digest(digest)

    async def work(session: Session) -> Token | None:
        now = await session.now()
        locked = await store.lock_token(session, old.id)
        known = await store.token_of(session, digest)
        if known is not None and known.node_id == old.node_id:
            return known
        if locked is None or locked.revoked_at is not None or not is_due(locked, now):
            return None
        assert locked.expires_at is not None
        lives_s = (locked.expires_at - locked.created_at).total_seconds()
        bounds = Bounds(node_id=locked.node_id, pool=locked.pool, joined_with=locked.joined_with)
        facts = {"name": locked.name, "role": Role.WORKER, "digest": digest, "lives_s": lives_s, "bounds": bounds}
        made = await store.add_token(session, **facts)  # type: ignore[arg-type]
        await store.end_soon(session, old.id, GRACE_S)
        await _note(session, old, "renew", made)
        return made

    async with connected() as database:
        return await database.transact(work)


def is_due(token: Token, now: datetime) -> bool:
    """Return whether a token may be renewed now."""
    if token.expires_at is None:
        return False
    return (now - token.created_at) >= RENEWED_FROM * (token.expires_at - token.created_at)


def _check_digest(digest: str) -> None:
    if re.fullmatch("[0-9a-f]{64}", digest) is None:
        rule = "it must be a SHA-256 in 64 hexadecimal digits"
        raise InputError(field="digest", value=f"{len(digest)} characters", rule=rule, hint="")


async def _note(session: Session, by: Token, verb: str, made: Token) -> None:
    target = f"token {made.id}"
    await audit.add_entry(session, actor_id=by.id, actor=by.name, verb=verb, target=target, outcome="done")
