"""What was kept long enough goes, some at a time: each kind after a setting of its own.

Metrics stay: nothing goes that they have not counted for good. A crash at any point is taken up by the next round.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from aaiclick.backoff import Backoff
from aaiclick.config import settings
from aaiclick.errors import AaiclickError
from aaiclick.orchestration.control.log_removal import Gone, logs_of, old_logs, remove, remove_logs
from aaiclick.orchestration.control.repairs import count_events
from aaiclick.orchestration.control.table_dropper import TableDropper
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.retention import ages, event_ages, job_ages, job_remains
from aaiclick.orchestration.store.session import Session

KINDS = ("jobs", "tasks", "runs", "logs", "tables", "events", "fires", "backfills", "workers", "audit")
"""What is counted."""

STEPS_MAX = 10
"""Transactions that one kind may take in one round: beside old things there are new ones."""

Counts = Counter[str]
Work = Callable[[Database], Awaitable[Counts]]


class Pruner:
    """Removes what is too old; the logs only if it is told where they are."""

    def __init__(self, log_dir: Path | None = None) -> None:
        self.log_dir = log_dir
        self._trouble = Backoff()

    @property
    def works(self) -> Sequence[Work]:
        """One for each kind: a bounded part of what there is to do, and what of it was done."""
        return (
            self.prune_jobs,
            self.prune_events,
            self.prune_fires,
            self.prune_backfills,
            self.prune_workers,
            self.prune_audit,
        )

    async def prune_jobs(self, database: Database) -> Counts:
        """Jobs with all that is theirs."""
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
            if not removed.rows:  # another is at it
                break
            counts.update(tasks=removed.tasks, runs=removed.runs)
        return +counts

    async def prune_events(self, database: Database) -> Counts:
        """Events, and the runs of tasks that were removed from their graphs."""
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
        return await _some(database, "workers", ages.prune_workers, settings().worker_ttl_s)

    async def prune_audit(self, database: Database) -> Counts:
        return await _some(database, "audit", ages.prune_audit, settings().audit_ttl_s)

    # ------------------------------------------------------------ files

    async def prune_logs(self, database: Database) -> Counts:
        """Old logs on this machine of runs that have ended."""
        total = 0
        async for names in self.old_logs(database):
            assert self.log_dir is not None
            total += self._told(await asyncio.to_thread(remove, self.log_dir, names))
        return +Counter(logs=total)

    async def old_logs(self, database: Database) -> AsyncIterator[list[str]]:
        """The names of such logs, some at a time. Those of tasks that nobody knows here may be another's."""
        ttl_s = settings().log_ttl_s
        if self.log_dir is None or ttl_s is None:
            return
        found = old_logs(self.log_dir, time.time() - ttl_s)
        while some := await asyncio.to_thread(next, found, None):
            ended = await database.read(partial(job_remains.ended_among, task_ids=sorted(set(some.values()))))
            yield [name for name, task_id in some.items() if task_id in ended]

    async def _remove_logs(self, task_ids: Sequence[int], runs: Sequence[tuple[int, int]]) -> int:
        if self.log_dir is None or not task_ids:
            return 0
        return self._told(await asyncio.to_thread(remove_logs, self.log_dir, task_ids, runs))

    def _told(self, gone: Gone) -> int:
        """A file that cannot be removed keeps no row: it is told, and left."""
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


async def prune(database: Database, log_dir: Path | None, told: Callable[[Counts], None] | None = None) -> Counts:
    """Remove all that is too old, a short transaction at a time; `told` hears how much went so far."""
    pruner, counts = Pruner(log_dir), Counter[str]()
    await _count_all(database)
    for work in pruner.works:
        while some := await work(database):
            counts.update(some)
            if told is not None:
                told(counts)
    counts.update(await pruner.prune_logs(database))
    if counts["tables"]:
        with Backoff().told("dropping tables", "whoever leads drops them", of=AaiclickError):
            await TableDropper(database).drop_unneeded()
    return counts


async def look(database: Database, log_dir: Path | None) -> Counts:
    """How much of each kind is too old, and would go."""
    await _count_all(database)
    counts, task_ids = await database.read(_look)
    if log_dir is not None:
        names = await asyncio.to_thread(logs_of, log_dir, task_ids)
        async for some in Pruner(log_dir).old_logs(database):
            names.update(some)
        counts["logs"] = len(names)
    return counts


async def _count_all(database: Database) -> None:
    """Nothing goes before the metrics have counted it."""
    while await count_events(database):
        pass


async def _look(session: Session) -> tuple[Counts, list[int]]:
    """How many rows of each kind would go, and the tasks among them."""
    limits = settings()
    due = await job_ages.all_due(session, limits.history_ttl_s)
    tasks, runs = await job_remains.count_of(session, due)
    counts = Counter(jobs=len(due), tasks=len(tasks), runs=runs, tables=await job_ages.count_tables(session, due))
    counts["events"] = await event_ages.count_old(session, limits.event_ttl_s)
    for kind, question, ttl_s in (
        ("fires", ages.count_fires, limits.fire_ttl_s),
        ("backfills", ages.count_backfills, limits.fire_ttl_s),
        ("workers", ages.count_workers, limits.worker_ttl_s),
        ("audit", ages.count_audit, limits.audit_ttl_s),
    ):
        counts[kind] = 0 if ttl_s is None else await question(session, ttl_s)
    return counts, tasks
