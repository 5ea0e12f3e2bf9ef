"""The coordinator of a process that has the database: one verb, one transaction."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import settings
from aaiclick.orchestration.models import Claim, Job, Receipt, Report, Worker
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.store import jobs, queue, ripples, submissions, workers
from aaiclick.orchestration.store.claims import QueueFront, claim_tasks
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects.contract import ReadyKey
from aaiclick.orchestration.store.machine_ids import provide_ids
from aaiclick.orchestration.store.reports import release_claims, take_reports
from aaiclick.orchestration.store.session import Session


class DirectCoordinator:
    """Answers from the database itself."""

    def __init__(
        self, database: Database, *, draw: Callable[[], float] = random.random, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.database = database
        self._draw = draw
        self._clock = clock
        self._fronts: dict[int, QueueFront] = {}
        self._claimed = 0
        """Tasks claimed since the queue was swept."""

    async def submit(self, submission: Submission) -> Job:
        return await submissions.submit(self.database, submission)

    async def register(self, *, hostname: str, pid: int, name: str | None = None) -> Worker:
        session_s = settings().session_s
        return await self.database.transact(
            lambda session: workers.add_worker(session, hostname=hostname, pid=pid, name=name, session_s=session_s)
        )

    async def beat(self, worker_id: int) -> bool:
        await provide_ids(self.database)
        return await self.database.transact(
            lambda session: workers.renew_session(session, worker_id, settings().session_s)
        )

    async def deregister(self, worker_id: int) -> bool:
        return await self.database.transact(lambda session: workers.stop_worker(session, worker_id))

    async def claim(self, worker_id: int, *, limit: int, placement: int = 0) -> list[Claim]:
        front = self._fronts.setdefault(placement, QueueFront())
        began = self._clock.monotonic()
        after = front.begin(began) if self.database.dialect.dead_rows_linger else None
        started = self.database.started_jobs

        async def work(session: Session) -> list[Claim]:
            return await claim_tasks(
                session, worker_id=worker_id, placement=placement, limit=limit, after=after, started=started
            )

        claims = await self.database.transact(work, at_once=self.database.dialect.claims_at_once)
        _remember(started, {claim.job_id for claim in claims})
        self._claimed += len(claims)
        if self.database.dialect.dead_rows_linger:
            ended = self._clock.monotonic()
            last = claims[-1] if claims else None
            taken = None if last is None else ReadyKey(-last.priority, last.job_id, last.task_id)
            front.learn(after, taken, ended, ended - began)
        return claims

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        receipt = await self.database.transact(lambda session: take_reports(session, worker_id, reports, self._draw))
        if receipt.rippling:
            await self._work_ripples(None)
        return receipt

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        epochs = {claim.task_id: claim.epoch for claim in claims}
        return await self.database.transact(lambda session: release_claims(session, worker_id, epochs))

    async def reserve(self, job_id: int, placement: int) -> None:
        await self.database.transact(lambda session: jobs.reserve_job(session, job_id, placement))

    async def reconcile(self, job_id: int | None = None) -> float | None:
        while await self.database.transact(queue.promote_due):
            pass
        await self._work_ripples(job_id)
        await self._sweep_queue()
        return await self.database.read(queue.seconds_to_next_due)

    async def _sweep_queue(self) -> None:
        """Now and then: it costs time in proportion to the queue, and saves each claim some."""
        if self._claimed >= SWEEP_EVERY:
            self._claimed = 0
            async with self.database.connection() as connection:
                await self.database.dialect.sweep_queue(connection)

    async def _work_ripples(self, job_id: int | None) -> None:
        """A step a transaction, so that nobody waits long for the rows."""
        while await self.database.transact(lambda session: ripples.work_one_ripple(session, job_id)):
            pass

    async def job(self, job_id: int) -> Job | None:
        return await self.database.read(lambda session: jobs.get_job(session, job_id))

    async def cancel(self, job_id: int) -> bool:
        return await self.database.transact(lambda session: jobs.cancel_job(session, job_id))


STARTED_JOBS_MAX = 10_000
SWEEP_EVERY = 20_000


def _remember(started: set[int], job_ids: set[int]) -> None:
    """No job returns to PENDING: those that started need not be looked at again."""
    if len(started) > STARTED_JOBS_MAX:
        started.clear()
    started |= job_ids
