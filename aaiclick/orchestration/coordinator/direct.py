"""The coordinator of a process that has the database. It owns the transactions; `contract` describes the verbs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import settings
from aaiclick.errors import ClaimLost
from aaiclick.orchestration.bus.contract import Bus
from aaiclick.orchestration.coordinator.batches import take_each
from aaiclick.orchestration.coordinator.claiming import Claiming, installation_of
from aaiclick.orchestration.coordinator.machine_ids import provide_ids
from aaiclick.orchestration.coordinator.submissions import DirectSubmitter
from aaiclick.orchestration.models import Claim, Held, Job, Orders, Receipt, Report, Stop, Worker
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.store import workers
from aaiclick.orchestration.store.claims import heartbeat_claims as held_runs
from aaiclick.orchestration.store.claims import reservations
from aaiclick.orchestration.store.claims.reports import release_claims
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.moves import clears, early_endings, queue, ripples, timeouts
from aaiclick.orchestration.store.object_tables.holds import Hold, hold_tables
from aaiclick.orchestration.store.object_tables.references import free_runs
from aaiclick.orchestration.store.reading import health, jobs
from aaiclick.orchestration.store.session import Session


class DirectCoordinator(DirectSubmitter):
    """Implements the coordinator's verbs on a database, with wake-ups over the bus if there is one."""

    def __init__(
        self,
        database: Database,
        *,
        draw: Callable[[], float] = random.random,
        clock: Clock = SYSTEM_CLOCK,
        bus: Bus | None = None,
    ) -> None:
        super().__init__(database)
        self._bus = bus
        self._listens = False
        if bus is not None:
            database.on_hints = bus.tell
        self._draw = draw
        self._clock = clock
        self._claiming = Claiming(database, clock)
        self._freed_for: dict[int, float] = {}
        """By worker id: when `_free_unknown` last ran for it, by the monotonic clock."""

    async def register(self, *, hostname: str, pid: int, name: str | None = None, concurrency: int = 1) -> Worker:
        async def work(session: Session) -> Worker:
            return await workers.add_worker(
                session,
                hostname=hostname,
                pid=pid,
                name=name,
                session_s=settings().session_s,
                concurrency=concurrency,
            )

        await installation_of(self.database)
        return await self.database.transact(work)

    async def beat(
        self,
        worker_id: int,
        *,
        known_call: int = 0,
        held: Sequence[Held] | None = None,
        completed: int = 0,
        failed: int = 0,
        unreported_s: int = 0,
        renewed: Callable[[], None] = lambda: None,
    ) -> Orders:
        began = self._clock.monotonic()
        # one statement, so that a connection that breaks half-way does not keep the worker's row locked
        renewing = self.database.transact if self.database.dialect.one_writer else self.database.write_one
        orders = await renewing(
            lambda session: workers.renew_session(
                session, worker_id, settings().session_s, completed=completed, failed=failed, unreported_s=unreported_s
            )
        )
        if orders.alive:
            renewed()
        if orders.alive and held is not None:
            orders.stop = await _compare(self.database, worker_id, known_call, held)
            if began >= self._freed_for.setdefault(worker_id, began) + FREE_EVERY_S:
                await _free_unknown(self.database, worker_id, known_call, held)
                self._freed_for[worker_id] = began
        if not orders.alive:
            self._freed_for.pop(worker_id, None)
        return orders

    async def deregister(self, worker_id: int) -> bool:
        self._freed_for.pop(worker_id, None)
        return await self.database.transact(lambda session: workers.stop_worker(session, worker_id))

    async def claim(
        self,
        worker_id: int,
        *,
        limit: int,
        reserved_for: int = 0,
        lanes: Sequence[int] = (PLAIN,),
        call: int = 0,
        begins: int = 0,
    ) -> list[Claim]:
        return await self._claiming.claim(
            worker_id, limit=limit, reserved_for=reserved_for, lanes=lanes, call=call, begins=begins
        )

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        receipt = await take_each(self.database, worker_id, reports, self._draw)
        if receipt.rippling:
            await work_ripples(self.database, None)
        return receipt

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        epochs = {claim.task_id: claim.epoch for claim in claims}
        return await self.database.transact(lambda session: release_claims(session, worker_id, epochs))

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        asked = Hold(claim.task_id, claim.epoch, tables)
        holding = self.database.write_one if self.database.dialect.tables.at_once else self.database.transact
        held = await holding(lambda session: hold_tables(session, claim.worker_id, [asked]))
        if not held:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="hold on tables")
        return await installation_of(self.database)

    async def slots(self) -> int:
        return await self.database.read(health.count_slots)

    async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
        await self.database.transact(lambda session: free_runs(session, runs))

    async def grant_ids(self) -> None:
        await provide_ids(self.database)

    async def wait_for_hints(self, timeout_s: float) -> frozenset[str]:
        if self._bus is None:  # no bus, no hints
            await asyncio.sleep(timeout_s)
            return frozenset()
        if not self._listens:
            await self._bus.listen()
            self._listens = True
        return await self._bus.wait(timeout_s)

    async def reserve(self, job_id: int, worker_id: int) -> None:
        await self.database.transact(lambda session: reservations.reserve_job(session, job_id, worker_id))

    async def reconcile(self, job_id: int | None = None) -> float | None:
        while await self.database.transact(queue.promote_due):
            pass
        await work_ripples(self.database, job_id)
        if job_id is not None:
            await self.database.transact(lambda session: timeouts.fail_overdue_jobs(session, job_id))
        await self._claiming.sweep_queue()
        return await self.database.read(queue.seconds_to_next_due)

    async def job(self, job_id: int) -> Job | None:
        return await self.database.read(lambda session: jobs.get_job(session, job_id))

    async def cancel(self, job_id: int) -> bool:
        return await self.database.transact(lambda session: early_endings.cancel_job(session, job_id))

    async def clear(self, task_id: int, *, dry_run: bool = False, upstream: bool = False) -> list[int]:
        how = {"dry_run": dry_run, "upstream": upstream}
        return await _clear(self.database, lambda session: clears.clear_tasks(session, [task_id], **how), dry_run)

    async def retry_failed(self, job_id: int, *, dry_run: bool = False, upstream: bool = False) -> list[int]:
        how = {"dry_run": dry_run, "upstream": upstream}
        return await _clear(self.database, lambda session: clears.retry_failed_tasks(session, job_id, **how), dry_run)

    async def replay(self, task_id: int) -> list[int]:
        return await _clear(self.database, lambda session: clears.replay(session, task_id), dry_run=False)


FREE_EVERY_S = 60.0
"""How often `_free_unknown` runs for a worker. There is rarely anything to free, and nothing waits for it."""


async def _compare(
    database: Database, worker_id: int, known_call: int, held: Sequence[Held]
) -> dict[tuple[int, int], Stop]:
    claimed = await database.read(lambda session: held_runs.claimed_by(session, worker_id))
    listed = {(run.task_id, run.epoch) for run in held}
    unknown = [run for run, call in claimed.items() if 0 < call <= known_call and run not in listed]
    if unknown:  # claimed by a call whose answer never reached the worker (pitfall T22)
        await database.transact(lambda session: release_claims(session, worker_id, dict(unknown)))
    started = [run for run in held if run.started and (run.task_id, run.epoch) in claimed]
    if started:
        await database.transact(lambda session: held_runs.start_runs(session, worker_id, started))
    lost = [run for run in held if (run.task_id, run.epoch) not in claimed]
    return await database.read(lambda session: held_runs.lost_runs(session, lost)) if lost else {}


async def _free_unknown(database: Database, worker_id: int, known_call: int, held: Sequence[Held]) -> None:
    """Free the tables of runs that the worker never learned of, because the answer to its claim call was lost."""
    unknown = await database.read(lambda session: held_runs.unknown_holders(session, worker_id, known_call, held))
    if unknown:
        await database.transact(lambda session: free_runs(session, unknown))


async def work_ripples(database: Database, job_id: int | None) -> None:
    """Work off postponed ripples, of one job or of all (None). One step per transaction keeps the row locks short."""
    while await database.transact(lambda session: ripples.work_one_ripple(session, job_id)):
        pass


async def _clear(database: Database, work: Callable[[Session], Awaitable[clears.Cleared]], dry_run: bool) -> list[int]:
    cleared = await (database.read if dry_run else database.transact)(work)
    if cleared.rippling:
        await work_ripples(database, cleared.job_id)
    return cleared.task_ids
