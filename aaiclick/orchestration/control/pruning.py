"""Pruning: rows and files that are older than the setting of their kind are removed, in short transactions.

Metrics do not change: nothing is removed before they have counted it for good. After a crash at any point, the next
round continues.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

from aaiclick.backoff import Backoff
from aaiclick.config import settings
from aaiclick.errors import AaiclickError
from aaiclick.orchestration.control.repairs import count_events
from aaiclick.orchestration.control.table_dropper import TableDropper
from aaiclick.orchestration.log_stores.contract import Gone, LogStore
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.retention import ages, event_ages, job_ages, job_remains
from aaiclick.orchestration.store.session import Session

KINDS = ("jobs", "tasks", "runs", "logs", "tables", "events", "fires", "backfills", "workers", "nodes", "audit")
"""The kinds of things that are removed and counted."""

STEPS_MAX = 10
"""Transactions that one kind may take in one round, so that the other reconcilers get their turn."""

Counts = Counter[str]
Work = Callable[[Database], Awaitable[Counts]]


class Pruner:
    """Removes what is too old, a bounded part at each call. Without `logs` it removes no logs."""

    def __init__(self, logs: LogStore | None = None) -> None:
        self.logs = logs
        self._trouble = Backoff()

    @property
    def works(self) -> Sequence[Work]:
        """The methods that prune the database, one for each kind. Each does a bounded part and returns its counts."""
        return (
            self.prune_jobs,
            self.prune_events,
            self.prune_fires,
            self.prune_backfills,
            self.prune_workers,
            self.prune_audit,
        )

    async def prune_jobs(self, database: Database) -> Counts:
        """Remove old jobs with their tasks, runs and logs, and mark their tables to be dropped."""
        ttl_s = settings().history_ttl_s
        counts = Counter(
            tables=await _repeat(database, partial(job_ages.mark_tables, ttl_s=ttl_s)),
            jobs=await _repeat(database, partial(job_ages.remove_jobs, ttl_s=ttl_s)),
        )
        for _ in range(STEPS_MAX):
            remains = await database.read(job_remains.look_for_remains)
            if remains is None:
                break
            counts["logs"] += await self._remove_logs(remains.task_ids, remains.runs)
            removed = await database.transact(partial(job_remains.remove_remains, remains=remains))
            if not removed.rows:  # another process is removing the same rows
                break
            counts.update(tasks=removed.tasks, runs=removed.runs)
        return +counts

    async def prune_events(self, database: Database) -> Counts:
        """Remove old events, and with them the runs and logs of tasks that were removed from their graphs."""
        ttl_s, counts = settings().event_ttl_s, Counter[str]()
        for _ in range(STEPS_MAX):
            runs = await database.read(partial(event_ages.runs_that_go, ttl_s=ttl_s))
            counts["logs"] += await self._remove_logs(sorted({task_id for task_id, _ in runs}), runs)
            gone = await database.transact(partial(event_ages.prune_events, ttl_s=ttl_s))
            if not gone:
                break
            counts.update(events=gone, runs=len(runs))
        return +counts

    async def prune_fires(self, database: Database) -> Counts:
        return await _some(database, "fires", ages.prune_fires, settings().fire_ttl_s)

    async def prune_backfills(self, database: Database) -> Counts:
        return await _some(database, "backfills", ages.prune_backfills, settings().fire_ttl_s)

    async def prune_workers(self, database: Database) -> Counts:
        """Remove workers that ended long ago, and nodes of which none is left."""
        ttl_s = settings().worker_ttl_s
        counts = await _some(database, "workers", ages.prune_workers, ttl_s)
        return counts + await _some(database, "nodes", ages.prune_nodes, ttl_s)

    async def prune_audit(self, database: Database) -> Counts:
        return await _some(database, "audit", ages.prune_audit, settings().audit_ttl_s)

    # ------------------------------------------------------------ files

    async def prune_logs(self, database: Database) -> Counts:
        """Remove old logs of ended runs from the log store."""
        total = 0
        async for names in self.old_logs(database):
            assert self.logs is not None
            total += self._told(await asyncio.to_thread(self.logs.remove, names))
        return +Counter(logs=total)

    async def old_logs(self, database: Database) -> AsyncIterator[list[str]]:
        """Yield the names of old logs of ended runs, in batches.

        A log of a task that is not in this database stays: it may belong to another installation.
        """
        ttl_s = settings().log_ttl_s
        if self.logs is None or ttl_s is None:
            return
        found = self.logs.old(time.time() - ttl_s)
        while some := await asyncio.to_thread(next, found, None):
            ended = await database.read(partial(job_remains.ended_among, task_ids=sorted(set(some.values()))))
            yield [name for name, task_id in some.items() if task_id in ended]

    async def _remove_logs(self, task_ids: Sequence[int], runs: Sequence[tuple[int, int]]) -> int:
        if self.logs is None or not task_ids:
            return 0
        return self._told(await asyncio.to_thread(self.logs.remove_runs, task_ids, runs))

    def _told(self, gone: Gone) -> int:
        """Log the trouble with removing files, and return how many were removed.

        A file that cannot be removed is left; the rows that belong to it are removed all the same.
        """
        if gone.trouble is None:
            self._trouble.over()
        else:
            self._trouble.met("removing logs", gone.trouble, then="they are left")
        return gone.files


async def _repeat(database: Database, step: Callable[[Session], Awaitable[int]]) -> int:
    total = 0
    for _ in range(STEPS_MAX):
        gone = await database.transact(step)
        if not gone:
            break
        total += gone
    return total


async def _some(
    database: Database, kind: str, step: Callable[[Session, float], Awaitable[int]], ttl_s: float | None
) -> Counts:
    if ttl_s is None:
        return Counter()
    return +Counter({kind: await _repeat(database, lambda session: step(session, ttl_s))})


# ---------------------------------------------------------------- all of it, now


async def prune(database: Database, logs: LogStore | None, told: Callable[[Counts], None] | None = None) -> Counts:
    """Remove everything that is too old, in short transactions. `told` is called with the counts after each step."""
    pruner, counts = Pruner(logs), Counter[str]()
    await _count_all(database)
    for work in pruner.works:
        while some := await work(database):
            counts.update(some)
            if told is not None:
                told(counts)
    counts.update(await pruner.prune_logs(database))
    if counts["tables"]:
        with Backoff().told("dropping tables", "the leader drops them later", of=AaiclickError):
            await TableDropper(database).drop_unneeded()
    return counts


async def look(database: Database, logs: LogStore | None) -> Counts:
    """Return how many things of each kind `prune` would remove."""
    await _count_all(database)
    counts, task_ids = await database.read(_look)
    if logs is not None:
        names = await asyncio.to_thread(logs.names_of, task_ids)
        async for some in Pruner(logs).old_logs(database):
            names.update(some)
        counts["logs"] = len(names)
    return counts


async def _count_all(database: Database) -> None:
    """Bring the metrics up to date: nothing is removed before they have counted it."""
    while await count_events(database):
        pass


async def _look(session: Session) -> tuple[Counts, list[int]]:
    """Return how many rows of each kind would be removed, and the ids of the tasks among them."""
    limits = settings()
    due = await job_ages.all_due(session, limits.history_ttl_s)
    tasks, runs = await job_remains.count_of(session, due)
    counts = Counter(jobs=len(due), tasks=len(tasks), runs=runs, tables=await job_ages.count_tables(session, due))
    counts["events"] = await event_ages.count_old(session, limits.event_ttl_s)
    for kind, question, ttl_s in (
        ("fires", ages.count_fires, limits.fire_ttl_s),
        ("backfills", ages.count_backfills, limits.fire_ttl_s),
        ("workers", ages.count_workers, limits.worker_ttl_s),
        ("nodes", ages.count_nodes, limits.worker_ttl_s),
        ("audit", ages.count_audit, limits.audit_ttl_s),
    ):
        counts[kind] = 0 if ttl_s is None else await question(session, ttl_s)
    return counts, tasks
