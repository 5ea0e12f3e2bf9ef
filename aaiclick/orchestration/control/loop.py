"""The control loop: whoever leads looks what there is to repair, and repairs it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.errors import BackendUnreachable
from aaiclick.orchestration.control import reconcilers
from aaiclick.orchestration.control.leader import Leader
from aaiclick.orchestration.control.pruning import Pruner
from aaiclick.orchestration.control.schedules import Scheduler
from aaiclick.orchestration.control.sweeper import TableSweeper
from aaiclick.orchestration.control.tables import TableDropper
from aaiclick.orchestration.store.chores import Chores, look_for_chores
from aaiclick.orchestration.store.database import Database
from aaiclick.trouble import Trouble, said

log = logging.getLogger("aaiclick")

EVERY_S = 2.0
MEND_EVERY_S = 30.0
COUNT_EVERY_S = 10.0
PRUNE_EVERY_S = 60.0
SWEEP_EVERY_S = 600.0
TTL_S_MAX = 10.0

Books = int | Counter[str]
"""How much was done, in all or of each kind."""
ROUND_S_MAX = 300.0
"""After so long a round is given up, and begun anew on another connection: each of its steps is committed by itself."""


class Control:
    """Leads if nobody does, and then repairs."""

    def __init__(
        self,
        database: Database,
        holder: int,
        *,
        session_s: float,
        clock: Clock = SYSTEM_CLOCK,
        log_dir: Path | None = None,
    ) -> None:
        self.database = database
        self.session_s = session_s
        self.clock = clock
        self.every_s = min(EVERY_S, session_s / 5)
        self.leader = Leader(database, holder, ttl_s=min(TTL_S_MAX, session_s / 2), clock=clock)
        self.tables = TableDropper(database)
        self.schedules = Scheduler(database)
        self.sweeper = TableSweeper(database, clock)
        self.pruner = Pruner(log_dir)
        self._since: float | None = None
        """Since when the database has been in reach without a gap."""
        self._seen = float("-inf")
        database.on_answer.append(self._in_reach)
        self._mended = self._counted = self._pruned = self._swept = clock.monotonic()
        self._trouble = Trouble(clock)
        self._troubles: dict[str, Trouble] = {}
        """What of the books cannot be kept, and of the repairs made, and why."""

    async def run(self) -> None:
        """Go on until cancelled."""
        try:
            while True:
                await self.clock.sleep(await self.round())
        finally:
            self.database.on_answer.remove(self._in_reach)
            await asyncio.shield(self._leave())

    async def round(self) -> float:
        """One round; gives the seconds until the next."""
        try:
            async with asyncio.timeout(ROUND_S_MAX):
                pause_s = await self._lead()
            async with asyncio.timeout(ROUND_S_MAX):
                await self._sweep_logs()
        except Exception as error:
            self._since = None
            self._trouble.met("the control loop", error)
            return self.every_s
        self._trouble.over()
        return pause_s

    async def _lead(self) -> float:
        if await self.leader.try_to_lead():
            return await self._repair()
        self._mended = self.clock.monotonic()
        return self.every_s

    async def _repair(self) -> float:
        chores = await self.database.read(look_for_chores)
        await self._attend(chores)
        now = self.clock.monotonic()
        if now - self._mended >= MEND_EVERY_S:
            self._mended = now
            await self._mend("mend_stuck_jobs", reconcilers.mend_stuck_jobs(self.database))
            await self._mend("free_idle_pins", self.tables.free_idle_pins())
        if now - self._counted >= COUNT_EVERY_S:
            self._counted = now
            await self._keep_books(reconcilers.count_events)
        if now - self._pruned >= PRUNE_EVERY_S:
            gone = [await self._keep_books(work) for work in self.pruner.works]
            self._pruned = self._pruned if any(gone) else now  # where there was some, there may be more
        await self.sweeper.now_and_then()
        if self.schedules.unfinished:
            return 0.0
        return min(self.every_s, chores.due_s or self.every_s, chores.fire_s or self.every_s)

    async def _sweep_logs(self) -> None:
        """Whether it leads or not: the logs that runs have left on this machine."""
        now = self.clock.monotonic()
        if now - self._swept >= SWEEP_EVERY_S:
            self._swept = now
            await self._keep_books(self.pruner.prune_logs)

    async def _keep_books(self, work: Callable[[Database], Awaitable[Books]]) -> bool:
        """Whether there was something to do. What is wrong in the books is no outage: whoever is lost is recovered."""
        name = work.__name__
        trouble = self._troubles.setdefault(name, Trouble(self.clock))
        try:
            done = await work(self.database)
        except Exception as error:
            trouble.met(name, error)
            return False
        trouble.over()
        return bool(done)

    async def _attend(self, chores: Chores) -> None:
        if chores.due_s == 0:
            await self._mend("promote_due_tasks", reconcilers.promote_due_tasks(self.database))
        if chores.ripples:
            await self._mend("work_off_ripples", reconcilers.work_off_ripples(self.database))
        if chores.orphans or (chores.sessions and self.may_reap()):
            recovering = reconcilers.recover_lost_runs(self.database, expire=self.may_reap())
            await self._mend("recover_lost_runs", recovering)
        if chores.limits:
            await self._mend("end_overdue_jobs", reconcilers.end_overdue_jobs(self.database))
        if chores.schedules or self.schedules.unfinished:
            await self._mend("firing schedules", self.schedules.fire())
        if chores.reserved:
            await self._mend("end_abandoned_jobs", reconcilers.end_abandoned_jobs(self.database))
        freed = 0
        if chores.strays or chores.orphans or chores.sessions:
            freed = await self._mend("free_strays", self.tables.free_strays())
        if chores.tables or freed:
            await self._mend("drop_unneeded", self.tables.drop_unneeded())

    async def _mend(self, name: str, repair: Awaitable[int]) -> int:
        """One repair; gives how much there was to do. One that fails is no outage, and the others are made all the
        same: a row that cannot be read must not keep whoever is lost from being found."""
        trouble = self._troubles.setdefault(name, Trouble(self.clock))
        try:
            done = await repair
        except (BackendUnreachable, OSError):
            raise
        except Exception as error:
            trouble.met(name, error)
            return 0
        trouble.over()
        return done

    def may_reap(self) -> bool:
        """An outage is not a crash: who was cut off from the database himself waits for one session's length, in
        which the others can say that they live."""
        now = self.clock.monotonic()
        return self._since is not None and now - self._since >= self.session_s

    def _in_reach(self) -> None:
        """Note that the database has answered, whoever asked; a gap, as after a pause, begins the wait anew."""
        now = self.clock.monotonic()
        if self._since is None or now - self._seen > self.session_s / 2:
            self._since = now
        self._seen = now

    async def _leave(self) -> None:
        try:
            await self.leader.leave()
        except Exception as error:
            log.warning("the leader cannot leave in order: %s; another leads when its term is over", said(error))
