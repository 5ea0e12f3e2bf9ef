"""Tokens, which authorize requests to the server: creating, listing, revoking and checking them."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from aaiclick.errors import InputError, NotAuthenticated, NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.rules.validation import ID_MAX, check_id, check_name, check_seconds, check_status, shorten
from aaiclick.orchestration.store.access import audit
from aaiclick.orchestration.store.access import tokens as store
from aaiclick.orchestration.store.access.tokens import Bounds
from aaiclick.orchestration.store.nodes import registration as nodes
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.workers import stop_workers_of

COMMAND_LINE = "command line"
JOIN_S, USES_MAX = 3600.0, 100_000
"""The life of a token for joining, if nothing else is said; how often one may be exchanged at most."""

MAKE_ONE = "Create one with: aaiclick token create NAME"

_FORM = re.compile(r"aai_([0-9]{1,19})_([A-Za-z0-9_-]{43})", re.ASCII)


class NewToken(NamedTuple):
    """A token with its text. The text can be shown only now: the database keeps a digest of it."""

    token: Token
    text: str


async def create_token(
    name: str,
    role: Role | str = Role.VIEWER,
    *,
    lives_s: float | None = None,
    uses: int | None = None,
    pool: str | None = None,
    node: str | None = None,
    actor: str = COMMAND_LINE,
) -> NewToken:
    """Create a token. Without `lives_s` it is valid until it is revoked, one for joining for an hour.

    One for joining may be exchanged `uses` times (1) for the token of a node, of this `pool` if it is given. One of a
    worker is bound to `node`, which is called like the token if it is not given. `actor` is named in the audit log.
    """
    label, wanted = check_name(name, "Token name"), check_status(role, Role, "role")
    if lives_s is not None:
        check_seconds(lives_s, "lives_s", "Leave it out for a token without end.")
    _check_bounds(wanted, uses, pool, node)
    if wanted == Role.JOIN:
        lives_s, uses = lives_s or JOIN_S, uses or 1
    secret = secrets.token_urlsafe(32)

    async def work(session: Session) -> Token:
        bounds = Bounds(pool=pool, uses_left=uses)
        if wanted == Role.WORKER:
            bounds = Bounds(node_id=await nodes.ensure_node(session, node or label, pool), pool=pool)
        facts = {"digest": digest_of(secret), "lives_s": lives_s, "bounds": bounds}
        token = await store.add_token(session, name=label, role=wanted, **facts)  # type: ignore[arg-type]
        target = f"token {token.id}"
        await audit.add_entry(session, actor_id=None, actor=actor, verb="create", target=target, outcome="done")
        return token

    async with connected() as database:
        token = await database.transact(work)
    return NewToken(token, text_of(token.id, secret))


def _check_bounds(role: Role, uses: int | None, pool: str | None, node: str | None) -> None:
    """Raise InputError for what does not belong to a token of this role."""
    if uses is not None and not (role == Role.JOIN and type(uses) is int and 1 <= uses <= USES_MAX):
        rule = f"a whole number from 1 to {USES_MAX}, and only for the role join"
        raise InputError(field="uses", value=shorten(uses), rule=rule, hint="")
    if pool is not None and role not in (Role.JOIN, Role.WORKER):
        raise InputError(field="pool", value=shorten(pool), rule="only for the roles join and worker", hint="")
    if node is not None and role != Role.WORKER:
        raise InputError(field="node", value=shorten(node), rule="only for the role worker", hint="")
    for field, value in (("pool", pool), ("Node name", node)):
        if value is not None:
            check_name(value, field)


async def list_tokens() -> list[Token]:
    """Return all tokens, the newest first, including expired and revoked ones."""
    async with connected() as database:
        return await database.read(store.list_tokens)


async def revoke_token(token_id: int, *, actor: str = COMMAND_LINE) -> bool:
    """Revoke a token, from the next request on. Return False if it was revoked before; raise NotFound.

    With the token of a node, all tokens of the node go, and the sessions of its workers end.
    `actor` is named in the audit log.
    """
    wanted = check_id(token_id, "token id")

    async def work(session: Session) -> bool:
        found = await store.find_token(session, wanted)
        if found is not None and found.token.node_id is not None:  # others of it may have been made of this one
            await store.revoke_node(session, found.token.node_id)
            await stop_workers_of(session, found.token.node_id)
            revoked: bool | None = found.token.revoked_at is None
        else:
            revoked = await store.revoke_token(session, wanted)
        if revoked is None:
            raise NotFound(what="token", field="id", value=wanted, hint="See: aaiclick token list")
        target, outcome = f"token {wanted}", "done" if revoked else "nothing: it was revoked before"
        await audit.add_entry(session, actor_id=None, actor=actor, verb="revoke", target=target, outcome=outcome)
        return revoked

    async with connected() as database:
        return await database.transact(work)


async def has_valid_token() -> bool:
    """Return whether at least one token is neither revoked nor expired."""
    async with connected() as database:
        return await database.read(store.has_valid_token)


def id_of(text: str) -> int:
    """Return the id in the text of a token; raise NotAuthenticated if it is none."""
    form = _FORM.fullmatch(text)
    token_id = int(form[1]) if form else 0
    if not 0 < token_id <= ID_MAX:
        raise NotAuthenticated(cause="it is not a token of this server", hint=MAKE_ONE)
    return token_id


async def authenticate(text: str) -> Token:
    """Return the token that has this text; raise NotAuthenticated if it is unknown, expired or revoked.

    The time of its last use is stored, but not again if that was done recently.
    """
    token_id = id_of(text)
    secret = text.split("_", 2)[2]
    async with connected() as database:
        found = await database.read(lambda session: store.find_token(session, token_id))
        if found is None or not hmac.compare_digest(found.digest, digest_of(secret)):
            raise NotAuthenticated(cause="it is not a token of this server", hint=MAKE_ONE)
        if found.token.revoked_at is not None:
            raise NotAuthenticated(cause="it was revoked", hint=MAKE_ONE)
        if found.expired:
            raise NotAuthenticated(cause="it has expired", hint=MAKE_ONE)
        if not found.use_is_noted:
            await database.transact(lambda session: store.note_use(session, token_id))
    return found.token


async def still_counts(token_id: int) -> bool:
    """Return whether a token is still valid. Streams that were opened with it ask this from time to time."""
    async with connected() as database:
        found = await database.read(lambda session: store.find_token(session, token_id))
    return found is not None and found.token.revoked_at is None and not found.expired


def text_of(token_id: int, secret: str) -> str:
    """Return a token as it is sent."""
    return f"aai_{token_id}_{secret}"


def digest_of(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
