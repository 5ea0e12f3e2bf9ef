"""Claiming: take ready tasks in order, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import and_, select

from aaiclick.backoff import Backoff
from aaiclick.errors import SessionOver
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.store.dialects.contract import ClaimedTask, ReadyKey
from aaiclick.orchestration.store.object_tables.holds import register_first
from aaiclick.orchestration.store.resources.grants import with_grants
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import FoundResults, read_named
from aaiclick.orchestration.store.tables import claims, tasks
from aaiclick.orchestration.store.transitions import start_jobs

_registering = Backoff()

BEARABLE_S = 0.005
"""If a look at the front takes no longer than this, no shortcut is needed."""


@dataclass(slots=True)
class QueueFront:
    """Where a claim starts to look in one lane of the ready queue.

    Normally at the front, which gives the exact order. It starts behind the last row that was taken only where deleted
    rows stay in the way for a while (PostgreSQL, until vacuum; for hours if a transaction holds an old snapshot) and
    looking at the front has become slow. Looks at the front then take at most a twentieth of the time.
    """

    last: ReadyKey | None = None
    costs_s: list[float] = field(default_factory=list)
    looked_at: float = float("-inf")

    def begin(self, now: float) -> ReadyKey | None:
        """Return the key behind which to look, or None for the front."""
        cost_s = min(self.costs_s, default=0.0)
        if cost_s <= BEARABLE_S or now - self.looked_at >= 20 * cost_s:
            return None
        return self.last

    def learn(self, after: ReadyKey | None, taken: ReadyKey | None, now: float, cost_s: float) -> None:
        """Note the last row that a claim took and what it cost; `after` is where it started."""
        if taken is not None:
            self.last = taken
        if after is None:
            self.costs_s = [*self.costs_s[-2:], cost_s]
            self.looked_at = now


async def claim_tasks(
    session: Session,
    *,
    worker_id: int,
    reserved_for: int,
    lane: int = PLAIN,
    limit: int,
    after: ReadyKey | None,
    started: set[int],
    call: int = 0,
    begins: int = 0,
    installation: str = "",
    alone: bool = True,
    on_taken: Callable[[], None] = lambda: None,
) -> list[Claim]:
    """Claim up to `limit` tasks of one lane: by priority, then oldest job, then task. A job's first claim starts it.

    The first `begins` of them are noted as begun, since their bodies start at once. Raise SessionOver if the worker's
    session is not live. The first table that each run may make is registered along with its claim; `on_taken` is
    called before that, since it takes time that says nothing about the queue. `alone`: the caller has begun no
    transaction if the dialect claims without one.
    """
    at_once = alone and session.dialect.claims_at_once
    asked = {"worker_id": worker_id, "reserved_for": reserved_for, "lane": lane, "call": call}
    taken = await session.dialect.claim_ready(session, **asked, limit=limit, after=after, begins=begins)
    if after is not None and len(taken) < limit:
        left = {"limit": limit - len(taken), "begins": max(0, begins - len(taken))}
        try:
            taken += await session.dialect.claim_ready(session, **asked, **left, after=None)
        except SessionOver:  # the session ended in between: what was taken before is the worker's
            if not taken:
                raise
        except Exception as error:
            # what was taken is committed already: if all of this were retried, no worker would learn of it
            if not (taken and at_once and session.dialect.is_transient(error)):
                raise
    on_taken()
    if not taken:
        return []
    taken.sort(key=lambda task: (-task.priority, task.job_id, task.id))
    if not session.dialect.claims_at_once:
        fresh = {task.job_id for task in taken} - started
        if fresh:
            await start_jobs(session, sorted(fresh))
    needing = [task.kwargs for task in taken if task.needs_inputs]
    found = await read_named(session, needing, failures=True) if needing else FoundResults()
    known = await _registered(session, worker_id, taken, found, at_once)
    return [_claim(task, worker_id, found, task.id in known, installation, lane) for task in taken]


async def claims_of_call(session: Session, worker_id: int, call: int, installation: str) -> list[Claim]:
    """Return the live claims that a claim call of this number made for the worker. Its runs register their tables."""
    mine = and_(claims.c.worker_id == worker_id, claims.c.claim_call == call)
    held = and_(tasks.c.id == claims.c.task_id, tasks.c.epoch == claims.c.epoch)
    rows = await session.rows(select(tasks).join(claims, held).where(mine))
    taken = [
        ClaimedTask(**{name: getattr(row, name) for name in ClaimedTask._fields})
        for row in sorted(rows, key=lambda row: (-row.priority, row.job_id, row.id))
    ]
    task_lanes = {row.id: row.lane for row in rows}
    needing = [task.kwargs for task in taken if task.needs_inputs]
    found = await read_named(session, needing, failures=True) if needing else FoundResults()
    claimed = [_claim(task, worker_id, found, False, installation, task_lanes[task.id]) for task in taken]
    return await with_grants(session, claimed)


async def _registered(
    session: Session, worker_id: int, taken: Sequence[ClaimedTask], found: FoundResults, at_once: bool
) -> set[int]:
    """Return the tasks whose first table is registered now; the runs of the others ask for theirs.

    Where the claims are committed already, an error must not lose them: they would be given back, and fail again.
    """
    try:
        known = await register_first(session, worker_id, taken, found)
    except Exception as error:
        if not at_once:
            raise
        _registering.met("registering tables with their claims", error, "their runs register the tables themselves")
        return set()
    _registering.over()
    return known


def _claim(
    task: ClaimedTask, worker_id: int, found: FoundResults, registered: bool, installation: str, lane: int
) -> Claim:
    return Claim(
        task_id=task.id,
        epoch=task.epoch,
        worker_id=worker_id,
        job_id=task.job_id,
        group_id=task.group_id,
        name=task.name,
        entrypoint=task.entrypoint,
        kwargs_json=task.kwargs,
        attempt=task.attempt,
        timeout_s=task.timeout_s,
        priority=task.priority,
        inputs=found.texts if task.needs_inputs else {},
        members=found.members if task.needs_inputs else {},
        outputs=found.outputs if task.needs_inputs else {},
        generation=task.generation,
        stop_when_cut_off=bool(task.stop_when_cut_off),
        cache_policy=task.cache_policy,
        registered=registered,
        installation=installation,
        lane=lane,
    )
