"""Claiming by a process that has the database: one lane after another, each in a transaction of its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from aaiclick.backoff import one_line
from aaiclick.clock import Clock
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.store.claims.claiming import QueueFront, claim_tasks
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects.contract import ReadyKey
from aaiclick.orchestration.store.object_tables.holds import name_of_installation
from aaiclick.orchestration.store.session import Session

log = logging.getLogger("aaiclick")

STARTED_JOBS_MAX = 10_000
SWEEP_EVERY = 20_000


class Claiming:
    """Claims tasks. It remembers between calls where to begin in the ready queue, and which jobs have started."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self._clock = clock
        self.fronts: dict[tuple[int, int], QueueFront] = {}
        """By (reserved_for, lane)."""
        self._claimed = 0
        """Tasks claimed since `sweep_queue` last ran."""

    async def claim(
        self, worker_id: int, *, limit: int, reserved_for: int, lanes: Sequence[int], call: int, begins: int
    ) -> list[Claim]:
        """Claim in these lanes, in this order, until the limit is reached."""
        claims: list[Claim] = []
        for lane in lanes:
            left = {"limit": limit - len(claims), "begins": max(0, begins - len(claims))}
            try:
                claims += await self._claim_in(lane, worker_id, reserved_for=reserved_for, call=call, **left)
            except Exception as error:
                if not claims:  # claims of earlier lanes are committed: raising would hide them from their worker
                    raise
                log.warning("worker %d: claiming in lane %d: %s", worker_id, lane, one_line(error))
                break
            if len(claims) >= limit:
                break
        return claims

    async def _claim_in(
        self, lane: int, worker_id: int, *, limit: int, reserved_for: int, call: int, begins: int
    ) -> list[Claim]:
        front = self.fronts.setdefault((reserved_for, lane), QueueFront())
        began = self._clock.monotonic()
        after = front.begin(began) if self.database.dialect.dead_rows_linger else None
        started = self.database.started_jobs
        installation = await installation_of(self.database)
        looked: list[float] = []

        async def work(session: Session) -> list[Claim]:
            return await claim_tasks(
                session,
                worker_id=worker_id,
                reserved_for=reserved_for,
                lane=lane,
                limit=limit,
                after=after,
                started=started,
                call=call,
                begins=begins,
                installation=installation,
                on_taken=lambda: looked.append(self._clock.monotonic()),
            )

        claiming = self.database.write_one if self.database.dialect.claims_at_once else self.database.transact
        claims = await claiming(work)
        _remember(started, {claim.job_id for claim in claims})
        self._claimed += len(claims)
        if self.database.dialect.dead_rows_linger:
            last = claims[-1] if claims else None
            taken = None if last is None else ReadyKey(-last.priority, last.job_id, last.task_id)
            front.learn(after, taken, looked[-1], looked[-1] - began)
        return claims

    async def sweep_queue(self) -> None:
        """Remove dead rows from the queue (PostgreSQL only), once `SWEEP_EVERY` tasks were claimed since the last time.

        The cost grows with the length of the queue; each later claim becomes cheaper.
        """
        if self._claimed >= SWEEP_EVERY:
            self._claimed = 0
            async with self.database.connection() as connection:
                await self.database.dialect.sweep_queue(connection)


def _remember(started: set[int], job_ids: set[int]) -> None:
    """Note that these jobs have started. A job never returns to PENDING, so claims need not start it again."""
    if len(started) > STARTED_JOBS_MAX:
        started.clear()
    started |= job_ids


async def installation_of(database: Database) -> str:
    """Return the name of this installation. It is read once and kept in the Database."""
    if not database.installation:
        database.installation = await database.transact(name_of_installation)
    return database.installation
