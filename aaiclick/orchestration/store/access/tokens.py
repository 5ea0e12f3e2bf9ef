"""Rows of `tokens`: created, looked up, marked as used, revoked; all times are the database's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import or_, select, update

from aaiclick.ids import new_id
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.definitions.access_tables import tokens
from aaiclick.orchestration.store.session import Session

USE_NOTED_EVERY_S = 60.0
"""The precision of `last_used_at`: one write a minute for each token, not one for each request."""


@dataclass(slots=True, frozen=True)
class FoundToken:
    """A token as stored, with the facts that decide whether it is valid and whether its use must be written."""

    token: Token
    digest: str
    expired: bool
    use_is_noted: bool


@dataclass(slots=True, frozen=True)
class Bounds:
    """What limits a token beside its role; see `Token`."""

    node_id: int | None = None
    pool: str | None = None
    uses_left: int | None = None
    joined_with: int | None = None


UNBOUND = Bounds()


async def add_token(
    session: Session, *, name: str, role: Role, digest: str, lives_s: float | None, bounds: Bounds = UNBOUND
) -> Token:
    """Insert a token; of its secret only the digest is stored. `lives_s` None: it never expires."""
    now = await session.now()
    token = Token(
        id=new_id(),
        name=name,
        role=role,
        created_at=now,
        expires_at=None if lives_s is None else now + timedelta(seconds=lives_s),
        revoked_at=None,
        last_used_at=None,
        node_id=bounds.node_id,
        pool=bounds.pool,
        uses_left=bounds.uses_left,
        joined_with=bounds.joined_with,
    )
    facts = {field: getattr(token, field) for field in Token.__slots__}
    await session.insert(tokens, [{**facts, "role": str(role), "digest": digest}])
    return token


async def find_token(session: Session, token_id: int) -> FoundToken | None:
    row = await session.first(select(tokens, session.dialect.now().label("now")).where(tokens.c.id == token_id))
    if row is None:
        return None
    used = row.last_used_at
    return FoundToken(
        token=Token.from_row(row),
        digest=row.digest,
        expired=row.expires_at is not None and row.expires_at <= row.now,
        use_is_noted=used is not None and row.now - used < timedelta(seconds=USE_NOTED_EVERY_S),
    )


async def lock_token(session: Session, token_id: int) -> Token | None:
    """Lock the row of a token and return it; None if there is none."""
    row = await session.first(select(tokens).where(tokens.c.id == token_id).with_for_update())
    return None if row is None else Token.from_row(row)


async def token_of(session: Session, digest: str) -> Token | None:
    """Return the token whose secret has this digest; None if there is none."""
    row = await session.first(select(tokens).where(tokens.c.digest == digest).limit(1))
    return None if row is None else Token.from_row(row)


async def take_use(session: Session, token_id: int) -> bool:
    """Use a token for joining; return False if it is used up."""
    which = (tokens.c.id == token_id, tokens.c.uses_left > 0)
    return bool(await session.run(update(tokens).where(*which).values(uses_left=tokens.c.uses_left - 1)))


async def end_soon(session: Session, token_id: int, lives_s: float) -> None:
    """Let a token expire after so many seconds, unless it expires before."""
    then = session.dialect.later(lives_s)
    await session.run(update(tokens).where(tokens.c.id == token_id, tokens.c.expires_at > then).values(expires_at=then))


async def valid_of_node(session: Session, node_id: int) -> list[Token]:
    """Return the tokens of a node that are neither revoked nor expired."""
    lasting = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > session.dialect.now())
    chosen = select(tokens).where(tokens.c.node_id == node_id, tokens.c.revoked_at.is_(None), lasting)
    return [Token.from_row(row) for row in await session.rows(chosen)]


async def revoke_node(session: Session, node_id: int) -> None:
    """Revoke all tokens of a node: one that was stolen may have been exchanged for the next.

    They are locked first. Whoever is renewing one has committed then, and the next statement sees what was made.
    """
    which = (tokens.c.node_id == node_id, tokens.c.revoked_at.is_(None))
    await session.rows(select(tokens.c.id).where(*which).order_by(tokens.c.id).with_for_update())
    await session.run(update(tokens).where(*which).values(revoked_at=session.dialect.now()))


async def note_use(session: Session, token_id: int) -> None:
    await session.run(update(tokens).where(tokens.c.id == token_id).values(last_used_at=session.dialect.now()))


async def list_tokens(session: Session) -> list[Token]:
    """Return all tokens, newest first, including expired and revoked ones."""
    return [Token.from_row(row) for row in await session.rows(select(tokens).order_by(tokens.c.id.desc()))]


async def revoke_token(session: Session, token_id: int) -> bool | None:
    """Revoke a token; return False if it was revoked before, None if there is no such token."""
    which = tokens.c.id == token_id
    changed = await session.run(
        update(tokens).where(which, tokens.c.revoked_at.is_(None)).values(revoked_at=session.dialect.now())
    )
    if changed:
        return True
    return None if await session.first(select(tokens.c.id).where(which)) is None else False


async def has_valid_token(session: Session) -> bool:
    """Return whether any token is neither revoked nor expired."""
    lasting = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > session.dialect.now())
    return await session.first(select(tokens.c.id).where(tokens.c.revoked_at.is_(None), lasting).limit(1)) is not None
