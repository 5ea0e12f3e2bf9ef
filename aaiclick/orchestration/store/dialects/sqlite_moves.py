"""Claims and completions on SQLite. The caller holds the write lock, so what was read stays true until the commit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.orchestration.store.dialects.contract import ClaimedTask, EndedTask, ReadyKey, session_over

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Done

_SESSION = "SELECT status, expires_at > ?, cordoned FROM workers WHERE id = ?"
_PICK = """
SELECT rank, job_id, task_id FROM ready WHERE reserved_for = ? AND lane = ? AND (rank, job_id, task_id) > (?, ?, ?)
ORDER BY reserved_for, lane, rank, job_id, task_id LIMIT ?
"""
_LEAVE = """
DELETE FROM ready WHERE reserved_for = ? AND lane = ?
    AND (rank, job_id, task_id) > (?, ?, ?) AND (rank, job_id, task_id) <= (?, ?, ?)
"""
_CLAIM = f"""
UPDATE tasks SET status = 'claimed', epoch = epoch + 1, worker_id = ?1, claimed_at = ?2,
    started_at = CASE WHEN id IN (SELECT value FROM json_each(?4)) THEN ?2 END
WHERE id IN (SELECT value FROM json_each(?3)) AND status = 'pending'
RETURNING {", ".join(ClaimedTask._fields)}
"""
_HOLD = "INSERT INTO claims (worker_id, task_id, epoch, claim_call) VALUES (?, ?, ?, ?)"
_NOTE = "INSERT INTO events (job_id, task_id, epoch, move, status, worker_id, at) VALUES (?, ?, ?, ?, ?, ?, ?)"

_FRONT = ReadyKey(-(2**63), 0, 0)
"""A key that sorts before all rows of the queue."""


def claim(
    driver: sqlite3.Connection,
    now: str,
    worker_id: int,
    reserved_for: int,
    lane: int,
    limit: int,
    after: ReadyKey | None,
    call: int,
    begins: int,
) -> list[ClaimedTask]:
    """Claim tasks from the front of the queue, or after `after`. See `Dialect.claim_ready`."""
    status, in_time, cordoned = driver.execute(_SESSION, (now, worker_id)).fetchone() or (None, False, False)
    if not is_live(status, in_time):
        raise session_over(worker_id, status)
    if cordoned:
        return []
    after = after or _FRONT
    picked = driver.execute(_PICK, (reserved_for, lane, *after, limit)).fetchall()
    if not picked:
        return []
    driver.execute(_LEAVE, (reserved_for, lane, *after, *picked[-1]))
    ids = [task_id for _, _, task_id in picked]
    values = (worker_id, now, json.dumps(ids), json.dumps(ids[:begins]))
    taken = [ClaimedTask._make(row) for row in driver.execute(_CLAIM, values)]
    driver.executemany(_HOLD, [(worker_id, task.id, task.epoch, call) for task in taken])
    driver.executemany(
        _NOTE, [(task.job_id, task.id, task.epoch, "claim", "claimed", worker_id, now) for task in taken]
    )
    return taken


def is_live(status: str | None, in_time: bool) -> bool:
    """Return whether a session in this state may claim."""
    return status not in (None, "stopped") and in_time


class HeldTask(NamedTuple):
    """The row of a task that the worker still holds; `started_at` falls back to `claimed_at`."""

    id: int
    epoch: int
    job_id: int
    group_id: int | None
    dependents_count: int
    critical: bool
    attempt: int
    generation: int
    lane: int
    claimed_at: str
    started_at: str


_HELD = f"""
SELECT {", ".join(HeldTask._fields[:-1])}, coalesce(started_at, claimed_at) FROM tasks
WHERE id IN (SELECT value FROM json_each(?)) AND worker_id = ? AND status IN ('claimed', 'running')
"""
_COMPLETE = (
    "UPDATE tasks SET status = 'completed', result = ?, log_path = ?, completed_at = ?, started_at = ? WHERE id = ?"
)
_RECORD = """
INSERT INTO runs (task_id, epoch, attempt, generation, worker_id, claimed_at, started_at, ended_at, outcome, log_path)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'completed', ?)
"""
_FREE = "DELETE FROM claims WHERE worker_id = ? AND task_id = ?"


def complete(driver: sqlite3.Connection, now: str, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
    """Complete the tasks that the worker still holds at the reported epoch. See `Dialect.complete_claims`."""
    items = {item.task_id: item for item in done}
    rows = driver.execute(_HELD, (json.dumps(list(items)), worker_id))
    passed = [held for held in map(HeldTask._make, rows) if passes(held, items[held.id])]
    driver.executemany(_COMPLETE, [_completion(held, items[held.id], now) for held in passed])
    driver.executemany(_RECORD, [_run(held, items[held.id], worker_id, now) for held in passed])
    driver.executemany(
        _NOTE, [(held.job_id, held.id, held.epoch, "complete", "completed", worker_id, now) for held in passed]
    )
    driver.executemany(_FREE, [(worker_id, held.id) for held in passed])
    return [
        EndedTask(held.id, held.job_id, held.group_id, held.dependents_count, held.critical, "completed", held.lane)
        for held in passed
    ]


def passes(held: HeldTask, item: Done) -> bool:
    """Return whether the report is of the run that holds the task (the fence)."""
    return held.epoch == item.epoch


def _completion(held: HeldTask, item: Done, now: str) -> tuple[Any, ...]:
    return item.result_json, item.log_path, now, held.started_at, held.id


def _run(held: HeldTask, item: Done, worker_id: int, now: str) -> tuple[Any, ...]:
    facts = (held.id, held.epoch, held.attempt, held.generation, worker_id)
    return *facts, held.claimed_at, held.started_at, now, item.log_path
