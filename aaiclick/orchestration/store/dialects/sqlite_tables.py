"""References to tables, in SQLite's own words: the caller holds the write lock, so what was read is still so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.dialects.table_moves import LOOK, Changes, Hold, Key, Pin, Ref, Seen

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session

_FENCE = """
SELECT id, epoch, job_id, claimed_at FROM tasks
WHERE id IN (SELECT value FROM json_each(?)) AND worker_id = ? AND status IN ('claimed', 'running')
"""
_REGISTER = """
INSERT INTO table_context_refs (table_name, context_id, job_id, epoch, preserved, created_at)
SELECT ?, ?, id, ?, preservation_mode = 'full', ? FROM jobs WHERE id = ? ON CONFLICT DO NOTHING
"""
_REFER = """
INSERT INTO table_run_refs (task_id, epoch, table_name, worker_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_LOOK = LOOK.format(
    groups="groups",
    runs="IN (SELECT value FROM json_each(?1))",
    done="IN (SELECT value FROM json_each(?2))",
    makers="IN (SELECT value FROM json_each(?3))",
)
_PIN = """
INSERT INTO table_pin_refs (task_id, table_name, freed) VALUES (?, ?, false)
ON CONFLICT (task_id, table_name) DO UPDATE SET freed = false
"""
_UNPIN = "DELETE FROM table_pin_refs WHERE task_id = ? AND table_name = ?"
_FREE = "UPDATE table_pin_refs SET freed = true WHERE task_id = ? AND table_name = ? AND NOT freed"
_END = "UPDATE table_run_refs SET freed = true WHERE task_id = ? AND epoch = ? AND table_name = ? AND NOT freed"
_GONE = "DELETE FROM table_run_refs WHERE task_id = ? AND epoch = ? AND table_name = ?"
_FORGET = "DELETE FROM table_context_refs WHERE table_name = ?"


class SqliteTables:
    """The answers of SQLite."""

    at_once: ClassVar[bool] = False

    async def hold(self, session: Session, worker_id: int, holds: Sequence[Hold]) -> set[Key]:
        driver = driver_of(session.connection)
        ids = json.dumps([hold.task_id for hold in holds])
        facts = {(row[0], row[1]): row[2:] for row in driver.execute(_FENCE, (ids, worker_id))}
        passed = [hold for hold in holds if hold[:2] in facts]
        outputs, refs = [], []
        for task_id, epoch, inputs, made in passed:
            job_id, claimed_at = facts[task_id, epoch]
            outputs += [(table, task_id, epoch, claimed_at, job_id) for table in made]
            refs += [(task_id, epoch, table, worker_id) for table in (*inputs, *made)]
        driver.executemany(_REGISTER, outputs)
        driver.executemany(_REFER, refs)
        return {(hold.task_id, hold.epoch) for hold in passed}

    async def look(
        self, session: Session, runs: Sequence[int], done: Sequence[int], makers: Sequence[int]
    ) -> list[Seen]:
        which = [json.dumps(list(ids)) for ids in (runs, done, makers)]
        return [Seen._make(row) for row in driver_of(session.connection).execute(_LOOK, which)]

    async def change(self, session: Session, changes: Changes) -> None:
        driver = driver_of(session.connection)
        driver.executemany(_PIN, changes.pinned)
        driver.executemany(_UNPIN, changes.unpinned)
        driver.executemany(_FREE, changes.freed)
        driver.executemany(_END, changes.ended)
        driver.executemany(_GONE, changes.gone)
        driver.executemany(_FORGET, [(table,) for table in changes.forgotten])

    async def delete_freed(self, session: Session, refs: Sequence[Ref], pins: Sequence[Pin]) -> None:
        driver = driver_of(session.connection)
        driver.executemany(f"{_GONE} AND freed", refs)
        driver.executemany(f"{_UNPIN} AND freed", pins)
