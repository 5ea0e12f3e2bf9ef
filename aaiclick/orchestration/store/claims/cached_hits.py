"""Hits: a run that asks for a remembered result is completed with it, in one transaction.

This is the only place that decides between hit and miss. The claim is checked, the entry is read by the database's
clock, its tables are locked against dropping and pinned, and the claim ends: all of it together, or nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import select, update

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Done
from aaiclick.orchestration.rules.cache_policies import CacheMode
from aaiclick.orchestration.rules.states import CACHE_HIT, CACHE_MISS, TaskStatus
from aaiclick.orchestration.rules.values.run_tables import tables_named
from aaiclick.orchestration.store.claims.reports import lock_claims, take_reports
from aaiclick.orchestration.store.definitions.cache_tables import cache_entries
from aaiclick.orchestration.store.object_tables.cache_entries import bound, find_entry, remove_entries
from aaiclick.orchestration.store.object_tables.inputs import lock_tables
from aaiclick.orchestration.store.object_tables.references import pin
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, jobs, tasks
from aaiclick.orchestration.store.transitions import task_event

HIT, MISS, REFRESHED = "hit", "miss", "refresh"
"""Values of `tasks.cache_outcome`: the result was remembered, was not, or was to be made anew."""


class Recalled(NamedTuple):
    """The answer to a run, and whether effects of its completion are still to be worked off."""

    answer: CacheAnswer
    rippling: bool = False


async def recall(session: Session, worker_id: int, task_id: int, epoch: int, key: CacheKey) -> Recalled:
    """Complete the run with a remembered result if there is one; else note the miss.

    A cleared task runs again, whatever is remembered, and so does one that is to be refreshed. Repeated after a lost
    answer, it gives the same answer. Raise ClaimLost if the run's claim is no longer live.
    """
    rows = await lock_claims(session, worker_id, {task_id: epoch})
    if not rows:
        return Recalled(await _answered_before(session, worker_id, task_id, epoch))
    mode: Any = await session.first(
        select(jobs.c.cache_mode, tasks.c.generation, tasks.c.entrypoint)
        .join(tasks, tasks.c.job_id == jobs.c.id)
        .where(tasks.c.id == task_id)
    )
    key = bound(key, mode.entrypoint)
    if not key.once and mode.cache_mode == CacheMode.OFF:
        return Recalled(CacheAnswer())
    fresh = key.refresh or mode.generation > 0 or (not key.once and mode.cache_mode == CacheMode.REFRESH)
    found = None if fresh else await _find(session, key)
    if found is not None and key.once and found.inputs != key.inputs:
        await _note(session, rows[0], key, REFRESHED if fresh else MISS, None)
        return Recalled(CacheAnswer(conflict=found.task_id))
    if found is None:
        await _note(session, rows[0], key, REFRESHED if fresh else MISS, None)
        return Recalled(CacheAnswer(remembers=True, refresh=fresh))
    await _note(session, rows[0], key, HIT, found.task_id)
    await pin(session, {(task_id, table) for table in tables_named(found.result)})
    done = Done(task_id, epoch, found.result, holds=True, made=())
    receipt = await take_reports(session, worker_id, [done], lambda: 1.0)  # the jitter of retries: there is none
    return Recalled(CacheAnswer(hit=True, result_json=found.result), receipt.rippling)


async def _find(session: Session, key: CacheKey) -> Any:
    """Return the entry of this key, with its tables locked; an entry whose tables are gone is removed instead."""
    found: Any = await find_entry(session, key.digest)
    if found is None:
        return None
    tables = tables_named(found.result)
    if tables and await lock_tables(session, tables):
        await remove_entries(session, 1, cache_entries.c.id == found.id)
        return None
    return found


async def _answered_before(session: Session, worker_id: int, task_id: int, epoch: int) -> CacheAnswer:
    """Return the answer of a call that completed this run and whose answer was lost."""
    mine = (tasks.c.id == task_id, tasks.c.epoch == epoch, tasks.c.worker_id == worker_id)
    hit = (tasks.c.status == TaskStatus.COMPLETED, tasks.c.cache_outcome == HIT)
    row: Any = await session.first(select(tasks.c.result).where(*mine, *hit))
    if row is None:
        raise ClaimLost(task_id=task_id, epoch=epoch, move="question for a remembered result")
    return CacheAnswer(hit=True, result_json=row.result)


async def _note(session: Session, row: Any, key: CacheKey, outcome: str, source: int | None) -> None:
    """Write hit or miss into the task's row, and an event."""
    values = {"cache_outcome": outcome, "cached_from_id": source}
    if key.once:
        values["idempotency_key"] = key.label
    await session.run(update(tasks).where(tasks.c.id == row.id).values(**values))
    now, move = await session.now(), CACHE_HIT if outcome == HIT else CACHE_MISS
    detail = f"from task {source}" if source is not None else ("refreshed" if outcome == REFRESHED else None)
    await session.insert(events, [task_event(row, move, row.status, now, detail)])
