"""The small repairs that reconcilers make.

Each is bounded and idempotent, and each step decides and writes in one transaction, under the locks of the rows.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from aaiclick.config import settings
from aaiclick.orchestration.store import workers
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.moves import queue, repairs, ripples, timeouts
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.resources import grants
from aaiclick.orchestration.store.retention.cache_ages import remove_expired
from aaiclick.orchestration.store.session import Session
from aaiclick.telemetry.fields import about

log = logging.getLogger("aaiclick")

ROUNDS_MAX = 1_000
"""Transactions that one reconciler may take in one round of the loop."""

STUCK_AT_ONCE = 10
COUNT_STEPS_MAX = 10


async def end_dead_sessions(database: Database) -> int:
    """End the sessions that have expired, and return how many."""
    ended = await database.transact(workers.expire_sessions)
    if ended:
        log.warning("%d workers have sent no heartbeat for too long: their sessions are ended", ended)
    return ended


async def recover_lost_runs(database: Database) -> int:
    """End the claims that have no live session, so that other workers can run the tasks; return how many."""
    losses_max = settings().losses_max
    found = await _all_of(database, lambda session: recoveries.recover_claims(session, losses_max))
    if found:
        log.warning("%d runs lost their worker and are given to other workers", found)
    return found


async def free_stray_grants(database: Database) -> int:
    """Free resources of runs that have no claim and no live worker; return the number of runs."""
    return await _all_of(database, grants.free_strays)


async def free_leaked_grants(database: Database) -> int:
    """Free resources of runs that have ended with their bodies; return the number of runs.

    This should never happen, so each finding is logged as an error.
    """
    leaked = await database.transact(grants.free_leaked)
    for task_id, epoch in leaked:
        fields = about(task=task_id, epoch=epoch)
        log.error("task %s (epoch %s): it has ended and still held resources (freed)", task_id, epoch, extra=fields)
    return len(leaked)


async def promote_due_tasks(database: Database) -> int:
    """Make delayed tasks ready whose time has come, and return how many."""
    return await _all_of(database, queue.promote_due)


async def work_off_ripples(database: Database) -> int:
    """Apply the postponed effects of ended tasks to their dependents (rows of `ripples`)."""
    return await _all_of(database, ripples.work_one_ripple)


async def end_overdue_jobs(database: Database) -> int:
    """Fail jobs that run longer than their `timeout_s`, and return how many."""
    total = 0
    while ended := await database.transact(timeouts.fail_overdue_jobs):
        total += len(ended)
        for job_id in ended:
            log.warning("job %s ran longer than its limit and has failed", job_id, extra=about(job=job_id))
    return total


async def end_abandoned_jobs(database: Database) -> int:
    """Cancel jobs that a `job_test` had reserved and whose process is gone; return how many."""
    found = await database.read(recoveries.abandoned_jobs)
    for job_id in found:
        log.warning("job %s was reserved by a process that is gone: it is cancelled", job_id, extra=about(job=job_id))
        await database.transact(partial(recoveries.abandon_job, job_id=job_id))
    return len(found)


async def expire_cache(database: Database) -> int:
    """Remove remembered results whose time is over, and return how many."""
    return await _all_of(database, remove_expired)


async def mend_stuck_jobs(database: Database) -> int:
    """Recount jobs that have open tasks of which none can run or is running; return how many needed a repair.

    This should never happen, so each finding is logged as an error.
    """
    found = await database.read(lambda session: repairs.stuck_jobs(session, STUCK_AT_ONCE))
    mended = 0
    for job_id in found:
        words = await database.transact(partial(repairs.repair_job, job_id=job_id))
        mended += bool(words)
        for word in words:
            log.error("job %s: %s (repaired)", job_id, word, extra=about(job=job_id))
    return mended


async def count_events(database: Database) -> int:
    """Count new events for the metrics, in at most COUNT_STEPS_MAX transactions.

    Return by how many ids the counted range grew; 0 if there was nothing to count.
    """
    total = 0
    if await database.read(metrics.is_behind):
        for _ in range(COUNT_STEPS_MAX):
            moved = await database.transact(metrics.count_settled)
            if not moved:
                break
            total += moved
    return total


async def _all_of(database: Database, step: Callable[[Session], Awaitable[int | bool]]) -> int:
    """Repeat a step, each time in its own transaction, until it finds nothing or ROUNDS_MAX is reached."""
    total = 0
    for _ in range(ROUNDS_MAX):
        done = int(await database.transact(step))
        if not done:
            break
        total += done
    return total
