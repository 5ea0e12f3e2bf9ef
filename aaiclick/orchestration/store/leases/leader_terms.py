"""Leader election: one row of `terms` for each role, which expires by the database's time.

An expired term is taken over by a conditional update (pitfalls T6, T7). A leader that was cut off does not know that it
lost its term (T16). So the term only keeps two leaders from doing the same work twice; correctness never relies on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update

from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import terms

CONTROL = "control"
"""The role of the process that runs the control loop."""


@dataclass(slots=True, frozen=True)
class LeaderTerm:
    """One row of `terms`: who leads a role, and until when; `term` grows with every change of holder."""

    role: str
    holder: int
    term: int
    expires_at: datetime


async def take_term(session: Session, role: str, holder: int, ttl_s: float) -> LeaderTerm | None:
    """Renew the holder's term, or begin a new one if there is none or it has expired.

    Return None while another process holds it. If two processes begin the first term at once, the primary key refuses
    one of the inserts.
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
    """Return the newest term of a role, which may have expired; None if nobody has led yet."""
    row = await session.first(select(terms).where(terms.c.role == role))
    return None if row is None else LeaderTerm(**row._mapping)


async def term_left_s(session: Session, role: str, holder: int) -> float:
    """Return the seconds that are left of another holder's term; 0 if nobody leads or `holder` does."""
    asked = select(terms.c.holder, terms.c.expires_at, session.dialect.now().label("now")).where(terms.c.role == role)
    row = await session.first(asked)
    if row is None or row.holder == holder:
        return 0.0
    return max(0.0, float((row.expires_at - row.now).total_seconds()))


async def leave_term(session: Session, role: str, holder: int) -> None:
    """Let the holder's own term expire now, so that another process can lead at once."""
    mine = (terms.c.role == role, terms.c.holder == holder)
    await session.run(update(terms).where(*mine).values(expires_at=session.dialect.now()))
