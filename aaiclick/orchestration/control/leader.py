"""The election of the leader by a term with an end, stored in the database.

The term only avoids duplicate work: with no leader, or with two, the state stays correct.
"""

from __future__ import annotations

import logging

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.leases.leader_terms import CONTROL, LeaderTerm, leave_term, take_term, term_left_s
from aaiclick.orchestration.store.rejections import is_duplicate

log = logging.getLogger("aaiclick")

TRUSTED = 0.6
"""The share of a term's length during which its holder relies on it; the rest allows for delays."""


class Leader:
    """The candidacy of one worker: it takes and renews the term, and knows until when to rely on it."""

    def __init__(self, database: Database, holder: int, *, ttl_s: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self.database = database
        self.holder = holder
        self.ttl_s = ttl_s
        self.clock = clock
        self.term = 0
        """The number of the current term, or of the last one it held."""
        self._trusted_until = float("-inf")
        self._renew_at = float("-inf")
        self._look_at = float("-inf")

    @property
    def leads(self) -> bool:
        """Whether this process holds the term and may rely on it now."""
        return self.clock.monotonic() < self._trusted_until

    async def try_to_lead(self) -> bool:
        """Renew the term, or take it if no other process holds it, and return whether this process leads.

        While another holds it, the database is not asked again before that term can be over.
        """
        began = self.clock.monotonic()
        if self.leads and began < self._renew_at:
            return True
        if not self.leads and began < self._look_at:
            return False
        led = self.leads
        left_s = 0.0 if led else await self.database.read(lambda session: term_left_s(session, CONTROL, self.holder))
        term = None if left_s > 0 else await try_for_term(self.database, CONTROL, self.holder, self.ttl_s)
        if term is None:
            self._trusted_until = float("-inf")
            self._look_at = self.clock.monotonic() + min(max(left_s, self.ttl_s / 10), self.ttl_s)
            return False
        self.term = term.term
        self._trusted_until = began + TRUSTED * self.ttl_s
        self._renew_at = began + self.ttl_s / 3
        if not led:
            log.info("worker %s leads (term %s)", self.holder, term.term)
        return self.leads

    async def leave(self) -> None:
        """End the term, so that another process can lead without waiting for its end."""
        if self.leads:
            self._trusted_until = float("-inf")
            await self.database.transact(lambda session: leave_term(session, CONTROL, self.holder))


async def try_for_term(database: Database, role: str, holder: int, ttl_s: float) -> LeaderTerm | None:
    """Renew the term, or begin a new one if there is none or it has expired; None while another holds it."""
    try:
        return await database.transact(lambda session: take_term(session, role, holder, ttl_s))
    except Exception as error:
        if not is_duplicate(error):
            raise
        return None  # another process has inserted the first row at the same time
