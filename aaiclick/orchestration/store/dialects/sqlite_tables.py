"""References to tables, in SQLite's own words: the caller holds the write lock, so what was read is still so.

A statement that looks for one task takes a few microseconds, and one that is given many as JSON some tens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.dialects.table_moves import (
    AROUND,
    NEEDED,
    Changes,
    Hold,
    Key,
    Pin,
    Ref,
    Seen,
    groups_of,
    with_groups,
)

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session

_FENCE = """
SELECT job_id, claimed_at FROM tasks
WHERE id = ? AND epoch = ? AND worker_id = ? AND status IN ('claimed', 'running')
"""
_REGISTER = """
INSERT INTO table_context_refs (table_name, context_id, job_id, epoch, preserved, created_at)
SELECT ?, ?, id, ?, preservation_mode = 'full', ? FROM jobs WHERE id = ? ON CONFLICT DO NOTHING
"""
_REFER = """
INSERT INTO table_run_refs (task_id, epoch, table_name, worker_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_REFS = "SELECT 'ref', task_id, epoch, table_name FROM table_run_refs WHERE task_id = ?"
_PINS = "SELECT 'pin', task_id, 0, table_name FROM table_pin_refs WHERE task_id = ?"
_MAKER = "SELECT job_id, group_id, kept FROM tasks WHERE id = ?"
_CONSUMERS = f"""
SELECT 'consumer', edge.previous_id, edge.next_id, NULL FROM dependencies AS edge
JOIN tasks AS consumer ON consumer.id = edge.next_id
WHERE edge.previous_id = ? AND edge.next_type = 'task' AND {NEEDED}
"""
_AROUND = AROUND.format(groups="groups", wanted="IN (SELECT value FROM json_each(?1))")
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
        passed: set[Key] = set()
        outputs, refs = [], []
        for task_id, epoch, inputs, made in holds:
            facts = driver.execute(_FENCE, (task_id, epoch, worker_id)).fetchone()
            if facts is not None:
                passed.add((task_id, epoch))
                outputs += [(table, task_id, epoch, facts[1], facts[0]) for table in made]
                refs += [(task_id, epoch, table, worker_id) for table in (*inputs, *made)]
        driver.executemany(_REGISTER, outputs)
        driver.executemany(_REFER, refs)
        return passed

    async def look(
        self, session: Session, runs: Sequence[int], done: Sequence[int], makers: Sequence[int]
    ) -> list[Seen]:
        driver = driver_of(session.connection)
        seen = [Seen._make(row) for task in runs for row in driver.execute(_REFS, (task,))]
        seen += [Seen._make(row) for task in done for row in driver.execute(_PINS, (task,))]
        for task in makers:
            seen += map(Seen._make, driver.execute(_CONSUMERS, (task,)))
            for job_id, group_id, kept in driver.execute(_MAKER, (task,)):
                seen += [Seen("kept", task, job_id, None)] if kept else []
                seen += [Seen("grouped", task, group_id, None)] if group_id is not None else []
        groups = groups_of(seen)
        return with_groups(seen, driver.execute(_AROUND, (json.dumps(groups),)).fetchall()) if groups else seen

    async def change(self, session: Session, changes: Changes) -> None:
        driver = driver_of(session.connection)
        steps: tuple[tuple[str, Sequence[Sequence[object]]], ...] = (
            (_PIN, changes.pinned),
            (_UNPIN, changes.unpinned),
            (_FREE, changes.freed),
            (_END, changes.ended),
            (_GONE, changes.gone),
            (_FORGET, [(table,) for table in changes.forgotten]),
        )
        for sql, rows in steps:
            if rows:
                driver.executemany(sql, rows)

    async def delete_freed(self, session: Session, refs: Sequence[Ref], pins: Sequence[Pin]) -> None:
        driver = driver_of(session.connection)
        driver.executemany(f"{_GONE} AND freed", refs)
        driver.executemany(f"{_UNPIN} AND freed", pins)
