"""The coordinator of a process that has the database. It owns the transactions; `contract` describes the verbs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import settings
from aaiclick.errors import ClaimLost, Conflict
from aaiclick.ids import new_id
from aaiclick.orchestration.bus.contract import Bus
from aaiclick.orchestration.coordinator.batches import take_each
from aaiclick.orchestration.coordinator.claiming import Claiming, installation_of
from aaiclick.orchestration.coordinator.machine_ids import provide_ids
from aaiclick.orchestration.coordinator.submissions import DirectSubmitter
from aaiclick.orchestration.models import (
    CacheAnswer,
    CacheKey,
    Claim,
    Held,
    Orders,
    Receipt,
    Report,
    Stop,
    Worker,
    WorkerStatus,
)
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.store import workers
from aaiclick.orchestration.store.access import callbacks
from aaiclick.orchestration.store.claims import heartbeat_claims as held_runs
from aaiclick.orchestration.store.claims import reservations
from aaiclick.orchestration.store.claims.cached_hits import recall
from aaiclick.orchestration.store.claims.reports import release_claims
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.moves import clears, early_endings, queue, ripples, timeouts
from aaiclick.orchestration.store.nodes.registration import register_node
from aaiclick.orchestration.store.object_tables.holds import Hold, hold_tables
from aaiclick.orchestration.store.object_tables.references import free_runs
from aaiclick.orchestration.store.reading import health
from aaiclick.orchestration.store.rejections import is_duplicate
from aaiclick.orchestration.store.session import Session


class ClearingSubmitter(DirectSubmitter):
    """Also runs tasks again."""

    async def clear(self, task_id: int, *, dry_run: bool = False, upstream: bool = False) -> list[int]:
        how = {"dry_run": dry_run, "upstream": upstream}
        return await _clear(self.database, lambda session: clears.clear_tasks(session, [task_id], **how), dry_run)

    async def retry_failed(self, job_id: int, *, dry_run: bool = False, upstream: bool = False) -> list[int]:
        how = {"dry_run": dry_run, "upstream": upstream}
        return await _clear(self.database, lambda session: clears.retry_failed_tasks(session, job_id, **how), dry_run)

    async def replay(self, task_id: int) -> list[int]:
        return await _clear(self.database, lambda session: clears.replay(session, task_id), dry_run=False)


class DirectCoordinator(ClearingSubmitter):
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
        self.claiming = Claiming(database, clock, draw)
        self._freed_for: dict[int, float] = {}
        """By worker id: when `_free_unknown` last ran for it, by the monotonic clock."""

    async def register(
        self,
        *,
        hostname: str,
        pid: int,
        name: str | None = None,
        concurrency: int = 1,
        node: NodeDescription | None = None,
        worker_id: int = 0,
    ) -> Worker:
        facts: dict[str, Any] = {"hostname": hostname, "pid": pid, "name": name, "concurrency": concurrency}

        async def work(session: Session) -> Worker:
            known = await workers.get_worker(session, worker_id) if worker_id else None
            if known is not None:
                return _same_worker(known, facts)
            found = None if node is None else await register_node(session, node)
            return await workers.add_worker(
                session,
                **facts,
                session_s=settings().session_s,
                worker_id=worker_id or new_id(),
                node_id=None if found is None else found.id,
                cordoned=found is not None and not found.is_open,
            )

        await installation_of(self.database)
        try:
            return await self.database.transact(work)
        except Exception as error:
            if not (worker_id and is_duplicate(error)):  # the same call, made twice at once
                raise
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
            orders.stop, released = await _compare(self.database, worker_id, known_call, held)
            if released:
                self.claiming.choice.ended(worker_id)
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
        lanes: Sequence[int] | None = (PLAIN,),
        call: int = 0,
        begins: int = 0,
        wait_s: float = 0.0,
        again: bool = False,
    ) -> list[Claim]:
        if again and (found := await self.claiming.find(worker_id, call)):
            return found
        return await self.claiming.claim(
            worker_id, limit=limit, reserved_for=reserved_for, lanes=lanes, call=call, begins=begins
        )

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        receipt = await take_each(self.database, worker_id, reports, self._draw)
        self.claiming.choice.ended(worker_id)
        if receipt.rippling:
            await work_ripples(self.database, None)
        return receipt

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        return await self.release_runs(worker_id, {claim.task_id: claim.epoch for claim in claims})

    async def release_runs(self, worker_id: int, epochs: dict[int, int]) -> set[int]:
        """Release the claims of these runs, given as epochs by task; return the tasks whose claims were still held."""
        released = await self.database.transact(lambda session: release_claims(session, worker_id, epochs))
        self.claiming.choice.ended(worker_id)
        return released

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        return await hold_for(self.database, claim.worker_id, (claim.task_id, claim.epoch), tables)

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        return await self.recall_run(claim.worker_id, (claim.task_id, claim.epoch), key)

    async def recall_run(self, worker_id: int, run: tuple[int, int], key: CacheKey) -> CacheAnswer:
        """Complete this run, (task, epoch), with the result that is remembered under this key, if there is one."""
        found = await self.database.transact(lambda session: recall(session, worker_id, *run, key))
        if found.answer.hit:
            self.claiming.choice.ended(worker_id)
        if found.rippling:
            await work_ripples(self.database, None)
        return found.answer

    async def slots(self) -> int:
        return await self.database.read(health.count_slots)

    async def callback(self, claim: Claim, digest: str) -> str | None:
        run = callbacks.Awaiting(claim.task_id, claim.epoch, claim.worker_id, claim.generation)
        return await callback_for(self.database, run, digest)

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
        await self.claiming.sweep_queue()
        return await self.database.read(queue.seconds_to_next_due)

    async def cancel(self, job_id: int) -> bool:
        return await self.database.transact(lambda session: early_endings.cancel_job(session, job_id))


FREE_EVERY_S = 60.0
"""How often `_free_unknown` runs for a worker. There is rarely anything to free, and nothing waits for it."""


async def callback_for(database: Database, run: callbacks.Awaiting, digest: str) -> str | None:
    """Accept callbacks for a run if the digest is not empty, and return what was called back."""
    if digest:
        await database.transact(lambda session: callbacks.expect_callback(session, run, digest))
    return await database.read(lambda session: callbacks.find_callback(session, run))


async def hold_for(database: Database, worker_id: int, run: tuple[int, int], tables: Sequence[str]) -> str:
    """Register tables for a run, given as (task, epoch); see `Coordinator.hold`."""
    holding = database.write_one if database.dialect.tables.at_once else database.transact
    if not await holding(lambda session: hold_tables(session, worker_id, [Hold(*run, tables)])):
        raise ClaimLost(task_id=run[0], epoch=run[1], move="hold on tables")
    return await installation_of(database)


def _same_worker(known: Worker, facts: Mapping[str, Any]) -> Worker:
    """Return the worker that a repeated call registered before; raise Conflict if the id belongs to another one."""
    if all(getattr(known, name) == value for name, value in facts.items()) and known.status != WorkerStatus.STOPPED:
        return known
    cause = "it was registered before, and is over or is another one"
    raise Conflict(what=f"Worker {known.id}", verb="registered", cause=cause, hint="Make a new id.")


async def _compare(
    database: Database, worker_id: int, known_call: int, held: Sequence[Held]
) -> tuple[dict[tuple[int, int], Stop], bool]:
    """Return the runs that the worker is to stop, and whether claims were released that it does not know of."""
    claimed = await database.read(lambda session: held_runs.claimed_by(session, worker_id))
    listed = {(run.task_id, run.epoch) for run in held}
    unknown = [run for run, call in claimed.items() if 0 < call <= known_call and run not in listed]
    if unknown:  # claimed by a call whose answer never reached the worker (pitfall T22)
        await database.transact(lambda session: release_claims(session, worker_id, dict(unknown)))
    started = [run for run in held if run.started and (run.task_id, run.epoch) in claimed]
    if started:
        await database.transact(lambda session: held_runs.start_runs(session, worker_id, started))
    lost = [run for run in held if (run.task_id, run.epoch) not in claimed]
    stop = await database.read(lambda session: held_runs.lost_runs(session, lost)) if lost else {}
    return stop, bool(unknown)


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
