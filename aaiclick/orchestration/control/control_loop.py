"""The control loop: every few seconds, the leader asks the database what there is to repair, and repairs it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial

from aaiclick.backoff import Backoff, Backoffs, said
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.errors import BackendUnreachable, DataUnreachable
from aaiclick.orchestration.control.accounts import Accounts
from aaiclick.orchestration.control.leader import Leader
from aaiclick.orchestration.control.reconcilers import RECONCILERS, Outcome, Reconciler, Tools, questions_of
from aaiclick.orchestration.log_stores.contract import LogStore
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.pending_work import look_for_work

log = logging.getLogger("aaiclick")

EVERY_S = 2.0
TTL_S_MAX = 10.0

LATER_S_MAX = 30.0
"""While another process leads, the periodic reconcilers of this one stay put off by up to this time.

So a new leader first runs the reconcilers whose questions report work.
"""

ROUND_S_MAX = 300.0
"""How long a question or a reconciler may take. Then it is cancelled, and started again on another connection; its
finished steps are kept, because each commits by itself."""


class Control:
    """The control loop of one process: it tries for the leader's term, and runs the reconcilers while it leads."""

    def __init__(
        self,
        database: Database,
        holder: int,
        *,
        session_s: float,
        clock: Clock = SYSTEM_CLOCK,
        logs: LogStore | None = None,
        reconcilers: Sequence[Reconciler] = RECONCILERS,
    ) -> None:
        self.database = database
        self.session_s = session_s
        self.clock = clock
        self.every_s = min(EVERY_S, session_s / 5)
        self.leader = Leader(database, holder, ttl_s=min(TTL_S_MAX, session_s / 2), clock=clock)
        self.reconcilers = reconcilers
        self.accounts = Accounts(database, [each.name for each in reconcilers], clock)
        self.tools = Tools(database, self.leader, self.accounts, clock=clock, logs=logs, may_reap=self.may_reap)
        self._look_for_chores = partial(look_for_work, questions=questions_of(reconcilers))
        self._due = {each.name: clock.monotonic() + each.every_s for each in reconcilers}
        """The earliest time of the next run of each reconciler."""
        self._again: set[str] = set()
        """Names of reconcilers that run at that time even if their question reports no work."""
        self._since: float | None = None
        """The time since which the database has answered without a gap; None during an outage."""
        self._seen = float("-inf")
        database.on_answer.append(self._in_reach)
        self._backoff, self._backoffs = Backoff(clock), Backoffs(clock)

    async def run(self) -> None:
        """Run rounds until cancelled, then write the counts and give up the term."""
        try:
            while True:
                await self.clock.sleep(await self.round())
        finally:
            self.database.on_answer.remove(self._in_reach)
            await asyncio.shield(self._leave())

    async def round(self) -> float:
        """Run one round, and return the seconds until the next."""
        try:
            async with asyncio.timeout(ROUND_S_MAX):
                chores = await self._look()
        except Exception as error:
            self._since = None
            self._backoff.met("the control loop", error)
            return self.every_s
        self._backoff.over()
        pause_s = self.every_s
        if chores is None:
            self._wait_for_a_turn()
        else:
            await self._reconcile(chores)
            pause_s = self._pause_s(chores)
        for each in self.reconcilers:
            if not each.leads and self._comes(each, {}, {}):
                await self._run(each)
        return pause_s

    async def _look(self) -> Mapping[str, float] | None:
        """Return the answers to the reconcilers' questions (`look_for_work`); None if another process leads."""
        if not await self.leader.try_to_lead():
            return None
        return await self.database.read(self._look_for_chores)

    async def _reconcile(self, chores: Mapping[str, float]) -> None:
        done: dict[str, int] = {}
        for each in self.reconcilers:
            if each.leads and self._comes(each, chores, done):
                done[each.name] = await self._run(each)
                if self._since is None:  # the database cannot be reached
                    return

    def _comes(self, each: Reconciler, chores: Mapping[str, float], done: Mapping[str, int]) -> bool:
        """Return whether this reconciler should run now. `done`: how much each has done in this round so far."""
        if any(done.get(name) for name in each.follows):
            return True
        if self.clock.monotonic() < self._due[each.name]:
            return False
        return each.question is None or each.name in self._again or chores.get(each.name) == 0

    async def _run(self, each: Reconciler) -> int:
        """Run one reconciler, and return how much it did.

        An error does not stop the others: a row that cannot be read must not prevent the recovery of lost runs.
        """
        backoff, began = self._backoffs.of(each.name), self.clock.monotonic()
        outcome, failed = Outcome(0), None
        try:
            async with asyncio.timeout(ROUND_S_MAX):
                found = await each.act(self.tools)
            outcome = found if isinstance(found, Outcome) else Outcome(found)
        except Exception as error:
            failed = error
            if is_outage(error) and not backoff.going_on:  # repeated failures of one alone do not mean an outage
                self._since = None
            backoff.met(each.name, error)
        else:
            backoff.over()
        self.accounts.note(each.name, outcome.done, self.clock.monotonic() - began, failed)
        if outcome.again_s is None:
            self._due[each.name] = began + each.every_s
            self._again.discard(each.name)
        else:
            self._due[each.name] = began + outcome.again_s
            self._again.add(each.name)
        return outcome.done

    def _pause_s(self, chores: Mapping[str, float]) -> float:
        now = self.clock.monotonic()
        soon = [seconds for seconds in chores.values() if seconds > 0]
        again = [max(0.0, self._due[name] - now) for name in self._again]
        return min([self.every_s, *soon, *again])

    def _wait_for_a_turn(self) -> None:
        now = self.clock.monotonic()
        for each in self.reconcilers:
            if each.leads:
                self._due[each.name] = max(self._due[each.name], now + min(each.every_s, LATER_S_MAX))

    def may_reap(self) -> bool:
        """Return whether expired sessions may be ended: the database has answered for at least one session's length.

        An outage is not a crash of the workers: after it, they get that long to renew their sessions.
        """
        now = self.clock.monotonic()
        return self._since is not None and now - self._since >= self.session_s

    def _in_reach(self) -> None:
        """Note that the database has answered a query of this process.

        A gap between answers, such as a pause of the process, restarts the wait of `may_reap`.
        """
        now = self.clock.monotonic()
        if self._since is None or now - self._seen > self.session_s / 2:
            self._since = now
        self._seen = now

    async def _leave(self) -> None:
        try:
            if self.leader.leads:
                await self.accounts.write(self.leader.term)
            await self.leader.leave()
        except Exception as error:
            log.warning(
                "the leader cannot give up its term: %s; another process leads when the term is over", said(error)
            )


def is_outage(error: Exception) -> bool:
    """Return whether the error means that the SQL database cannot be reached; an outage of ClickHouse does not."""
    if isinstance(error, DataUnreachable):
        return False
    return isinstance(error, BackendUnreachable | ConnectionError | TimeoutError)
