"""Who leads. Leading only saves work: with no leader, or with two, nothing goes wrong."""

from __future__ import annotations

import logging

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.leases.leader_terms import CONTROL, LeaderTerm, leave_term, take_term, term_left_s
from aaiclick.orchestration.store.rejections import is_duplicate

log = logging.getLogger("aaiclick")

TRUSTED = 0.6
"""The part of a term's life for which its holder trusts it: the rest is for what may lie between."""


class Leader:
    """Tries for the term, and knows for how long it may trust it."""

    def __init__(self, database: Database, holder: int, *, ttl_s: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self.database = database
        self.holder = holder
        self.ttl_s = ttl_s
        self.clock = clock
        self.term = 0
        """The number of the term that it has, or had last."""
        self._trusted_until = float("-inf")
        self._renew_at = float("-inf")
        self._look_at = float("-inf")

    @property
    def leads(self) -> bool:
        """Whether the term can be trusted at this instant."""
        return self.clock.monotonic() < self._trusted_until

    async def try_to_lead(self) -> bool:
        """Renew the term, or take it if nobody has it; cheap while another has it."""
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
        """Let another lead at once."""
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
        return None  # another made the first row a moment ago
