"""Tokens, which authorize requests to the server: creating, listing, revoking and checking them."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from aaiclick.errors import NotAuthenticated, NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.rules.validation import ID_MAX, check_id, check_name, check_seconds, check_status
from aaiclick.orchestration.store.access import audit
from aaiclick.orchestration.store.access import tokens as store
from aaiclick.orchestration.store.session import Session

COMMAND_LINE = "command line"
MAKE_ONE = "Make one with: aaiclick token create NAME"

_FORM = re.compile(r"aai_([0-9]{1,19})_([A-Za-z0-9_-]{43})", re.ASCII)


class NewToken(NamedTuple):
    """A token with its text. The text can be shown only now: the database keeps a digest of it."""

    token: Token
    text: str


async def create_token(
    name: str, role: Role | str = Role.VIEWER, *, lives_s: float | None = None, actor: str = COMMAND_LINE
) -> NewToken:
    """Create a token. Without `lives_s` it is valid until it is revoked. `actor` is named in the audit log."""
    label, wanted = check_name(name, "Token name"), check_status(role, Role, "role")
    if lives_s is not None:
        check_seconds(lives_s, "lives_s", "Leave it out for no end.")
    secret = secrets.token_urlsafe(32)

    async def work(session: Session) -> Token:
        token = await store.add_token(session, name=label, role=wanted, digest=_digest(secret), lives_s=lives_s)
        target = f"token {token.id}"
        await audit.add_entry(session, actor_id=None, actor=actor, verb="create", target=target, outcome="done")
        return token

    async with connected() as database:
        token = await database.transact(work)
    return NewToken(token, f"aai_{token.id}_{secret}")


async def list_tokens() -> list[Token]:
    """Return all tokens, the newest first, including expired and revoked ones."""
    async with connected() as database:
        return await database.read(store.list_tokens)


async def revoke_token(token_id: int, *, actor: str = COMMAND_LINE) -> bool:
    """Revoke a token, from the next request on. Return False if it was revoked before; raise NotFound.

    `actor` is named in the audit log.
    """
    wanted = check_id(token_id, "token id")

    async def work(session: Session) -> bool:
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


async def authenticate(text: str) -> Token:
    """Return the token that has this text; raise NotAuthenticated if it is unknown, expired or revoked.

    The time of its last use is stored, but not again if that was done recently.
    """
    form = _FORM.fullmatch(text)
    token_id = int(form[1]) if form else 0
    if form is None or not 0 < token_id <= ID_MAX:
        raise NotAuthenticated(cause="it is none of ours", hint=MAKE_ONE)
    async with connected() as database:
        found = await database.read(lambda session: store.find_token(session, token_id))
        if found is None or not hmac.compare_digest(found.digest, _digest(form[2])):
            raise NotAuthenticated(cause="it is none of ours", hint=MAKE_ONE)
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


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
