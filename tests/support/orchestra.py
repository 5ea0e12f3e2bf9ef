"""A database, a coordinator and a worker, and the few things that store tests do with them again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Executable, Row, select, text, update

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Claim, Done, Failure, Job, Receipt, Report, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.results.task_results import encode_returned
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.reading import jobs as store_jobs
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import delayed, ready, ripples, tasks, workers
from tests.support.invariants import violations

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
BEAT_EVERY_S = 5.0
"""After so many claims a worker that drains says that it lives: many of them take longer than a session."""

WAIT_S_MAX = 60
"""How long a test waits for another transaction to come to a lock before it gives up."""

Behaviour = Callable[[Claim], Report | None]


def make(name: str = "t", **options: Any) -> Task:
    """A task of that name."""
    return Task(f"some.module.{name}", name=name, **options)


def done(claim: Claim, result_json: str = "null") -> Done:
    return Done(claim.task_id, claim.epoch, result_json)


def failure(claim: Claim, error: str = "ValueError: no", **facts: Any) -> Failure:
    return Failure(claim.task_id, claim.epoch, error, error_types=("builtins.ValueError",), **facts)


def failing(*names: str) -> Behaviour:
    """Tasks of these names fail, the others complete."""
    return lambda claim: failure(claim) if claim.name in names else done(claim)


def extension(job: Job, *nodes: Node) -> Submission:
    """What applying these to the job would submit."""
    return gather(job.id, nodes)


@dataclass
class Orchestra:
    """One process's way to the state."""

    database: Database
    coordinator: DirectCoordinator
    worker: int
    beaten_at: float = field(default_factory=time.monotonic, kw_only=True)

    # ------------------------------------------------------------ graphs

    async def submit(self, *nodes: Node, name: str = "job", **options: Any) -> Job:
        """Store these as a new job."""
        job = new_job(name, **options)
        submission = gather(job.id, nodes)
        submission.new_job = job
        for task in submission.tasks:
            task.priority = task.priority or job.priority
        return await self.coordinator.submit(submission)

    async def submit_returning(self, returned: object, *nodes: Node, name: str = "job", **options: Any) -> Job:
        """Store these as a new job whose result is that."""
        job = new_job(name, **options)
        job.result_json, named = encode_returned(returned)
        submission = gather(job.id, [*nodes, *named])
        submission.new_job = job
        return await self.coordinator.submit(submission)

    async def apply(self, job: Job, *nodes: Node) -> Job:
        """Add these to a job that exists."""
        return await self.coordinator.submit(extension(job, *nodes))

    # ------------------------------------------------------------ work

    async def claim(
        self, limit: int = 100, reserved_for: int = 0, begins: int = 0, lanes: Sequence[int] | None = (PLAIN,)
    ) -> list[Claim]:
        options: dict[str, Any] = {"limit": limit, "reserved_for": reserved_for, "begins": begins}
        return await self.coordinator.claim(self.worker, lanes=lanes, **options)

    async def claim_named(self, limit: int = 100) -> dict[str, Claim]:
        return {claim.name: claim for claim in await self.claim(limit)}

    async def report(self, *reports: Report) -> Receipt:
        return await self.coordinator.report(self.worker, reports)

    async def complete(self, *claims: Claim) -> Receipt:
        return await self.report(*(done(claim) for claim in claims))

    async def fail(self, *claims: Claim, **facts: Any) -> Receipt:
        return await self.report(*(failure(claim, **facts) for claim in claims))

    async def drain(self, behaviour: Behaviour = done, *, limit: int = 100) -> list[Claim]:
        """Claim and report until nothing is ready, delayed or postponed; gives the claims in their order."""
        taken: list[Claim] = []
        while True:
            claims = await self.claim(limit)
            if not claims:
                due_s = await self.coordinator.reconcile()
                if due_s:
                    await self.let_time_pass()
                claims = await self.claim(limit)
                if not claims and due_s is None:
                    return taken
            await stay(self)
            taken += claims
            reports = [behaviour(claim) for claim in claims]
            await self.report(*(report for report in reports if report is not None))

    async def let_time_pass(self) -> None:
        """Whatever is delayed is due now."""

        async def work(session: Session) -> None:
            await session.run(update(tasks).where(tasks.c.run_after.is_not(None)).values(run_after=LONG_AGO))
            await session.run(update(delayed).values(run_after=LONG_AGO))

        await self.database.transact(work)

    # ------------------------------------------------------------ questions

    async def rows(self, statement: Executable) -> Sequence[Row[Any]]:
        return await self.database.read(lambda session: session.rows(statement))

    async def scalar(self, statement: Executable) -> Any:
        return await self.database.read(lambda session: session.scalar(statement))

    async def job(self, job: Job) -> Job:
        found = await self.coordinator.job(job.id)
        assert found is not None
        return found

    async def task(self, node: Task | Claim) -> Task:
        task_id = node.task_id if isinstance(node, Claim) else node.id
        found = await self.database.read(lambda session: store_jobs.get_task(session, task_id))
        assert found is not None
        return found

    async def statuses(self, job: Job) -> dict[str, str]:
        """The status of each task, by its name."""
        rows = await self.rows(select(tasks.c.name, tasks.c.status).where(tasks.c.job_id == job.id))
        return {row.name: row.status for row in rows}

    async def ready_names(self) -> list[str]:
        """The names of the tasks that may be claimed, in order."""
        found = await self.rows(
            select(tasks.c.name)
            .join(ready, ready.c.task_id == tasks.c.id)
            .order_by(ready.c.reserved_for, ready.c.lane, ready.c.rank, ready.c.job_id, ready.c.task_id)
        )
        return [row.name for row in found]

    async def ripples(self) -> list[tuple[str, int]]:
        """What is postponed: kind and node."""
        found = await self.rows(select(ripples.c.kind, ripples.c.node_id).order_by(ripples.c.id))
        return [(row.kind, row.node_id) for row in found]

    async def violations(self, *, at_rest: bool = True) -> list[str]:
        return await self.database.read(lambda session: violations(session, at_rest=at_rest))

    # ------------------------------------------------------------ two transactions at once

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """A transaction that is committed at the end of the block, and never tried again."""
        async with self.database._transaction() as session:
            yield session

    async def until_waiting(self, count: int = 1) -> None:
        """Wait until so many transactions of this database wait for a lock."""
        await until(lambda: _wait(self.database, count))


async def more_workers(band: Orchestra, count: int) -> list[int]:
    """The sessions of so many other workers."""
    return [(await band.coordinator.register(hostname="there", pid=number)).id for number in range(count)]


async def expire(band: Orchestra, worker_id: int | None = None) -> None:
    """The time of this worker's session is up, as of now."""
    over = update(workers).where(workers.c.id == (worker_id or band.worker))
    await band.database.transact(lambda session: session.run(over.values(expires_at=session.dialect.now())))


async def _wait(database: Database, count: int) -> bool:
    """Whether so many wait for a lock."""
    if database.dialect.name == "postgresql":
        asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return bool(await database.read(lambda session: session.scalar(text(asked))) >= count)
    asked = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'"
    (row,) = await database.read(lambda session: session.rows(text(asked)))
    return int(row.Value) >= count


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Ask the database, which tells nobody by itself, until it is so."""
    async with asyncio.timeout(WAIT_S_MAX):
        while not await is_so():  # noqa: ASYNC110 (there is no event to wait for)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def orchestra(url: str, **options: Any) -> AsyncIterator[Orchestra]:
    """Open the database at this URL, with a worker; `options` are the coordinator's."""
    database = await Database.open(url)
    try:
        options = {"draw": lambda: 1.0, **options}
        coordinator = DirectCoordinator(database, **options)
        worker = await coordinator.register(hostname="here", pid=1)
        late = worker.expires_at + timedelta(hours=1)  # it has no heartbeat, and the machine may be slow
        stays = update(workers).where(workers.c.id == worker.id).values(expires_at=late)
        await database.transact(lambda session: session.run(stays))
        yield Orchestra(database, coordinator, worker.id)
    finally:
        await database.close()


async def stay(band: Orchestra) -> None:
    """Keep the session, however slow the machine is: to be called in loops."""
    if time.monotonic() >= band.beaten_at + BEAT_EVERY_S:
        assert (await band.coordinator.beat(band.worker)).alive
        band.beaten_at = time.monotonic()
