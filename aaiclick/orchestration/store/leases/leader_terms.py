"""Who leads: a row with an end, by the database's time.

An expired term is taken over by a conditional update (pitfalls T6, T7), and a leader that was cut off does not know
that it is none any more (T16): so leading only saves work, and guards nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update

from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import terms

CONTROL = "control"
"""The role whose leader promotes and repairs."""


@dataclass(slots=True, frozen=True)
class LeaderTerm:
    """A right to lead."""

    role: str
    holder: int
    term: int
    expires_at: datetime


async def take_term(session: Session, role: str, holder: int, ttl_s: float) -> LeaderTerm | None:
    """Renew the term, or begin a new one if there is none or it has expired; None while another holds it.

    Two may begin the first one at once: the primary key refuses one of them.
    """
    until = session.dialect.later(ttl_s)
    mine = update(terms).where(terms.c.role == role, terms.c.holder == holder)
    changed = await session.run(mine.values(expires_at=until))
    if not changed:
        over = update(terms).where(terms.c.role == role, terms.c.expires_at < session.dialect.now())
        changed = await session.run(over.values(term=terms.c.term + 1, holder=holder, expires_at=until))
    found = await read_term(session, role)
    if found is None:
        ends = await session.now() + timedelta(seconds=ttl_s)
        await session.insert(terms, [{"role": role, "holder": holder, "term": 1, "expires_at": ends}])
        return LeaderTerm(role, holder, 1, ends)
    return found if changed and found.holder == holder else None


async def read_term(session: Session, role: str) -> LeaderTerm | None:
    """Who leads, or led last."""
    row = await session.first(select(terms).where(terms.c.role == role))
    return None if row is None else LeaderTerm(**row._mapping)


async def term_left_s(session: Session, role: str, holder: int) -> float:
    """How long another may go on leading; 0 if nobody does, or if it is this one's own term."""
    asked = select(terms.c.holder, terms.c.expires_at, session.dialect.now().label("now")).where(terms.c.role == role)
    row = await session.first(asked)
    if row is None or row.holder == holder:
        return 0.0
    return max(0.0, float((row.expires_at - row.now).total_seconds()))


async def leave_term(session: Session, role: str, holder: int) -> None:
    """End one's own term, so that another need not wait for its end."""
    mine = (terms.c.role == role, terms.c.holder == holder)
    await session.run(update(terms).where(*mine).values(expires_at=session.dialect.now()))
