"""References to tables on SQLite. The caller holds the write lock, so what was read stays true until the commit.

Most statements are for one task: each takes a few microseconds, and one with many tasks as JSON some tens.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.dialects.table_moves import (
    AROUND,
    Changes,
    Hold,
    Key,
    Pin,
    Ref,
    Seen,
    groups_of,
    looking,
    with_groups,
)

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session

_FENCE = """
SELECT job_id, claimed_at, preservation_mode = 'full' FROM tasks JOIN jobs ON jobs.id = tasks.job_id
WHERE tasks.id = ? AND epoch = ? AND worker_id = ? AND tasks.status IN ('claimed', 'running')
"""
_REGISTER = """
INSERT INTO table_context_refs (table_name, context_id, epoch, job_id, created_at, preserved) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_REGISTER_FENCED = """
INSERT INTO table_context_refs (table_name, context_id, epoch, job_id, created_at, preserved)
SELECT ?, tasks.id, epoch, job_id, claimed_at, preservation_mode = 'full' FROM tasks JOIN jobs ON jobs.id = tasks.job_id
WHERE tasks.id = ? AND epoch = ? AND worker_id = ? AND tasks.status IN ('claimed', 'running')
ON CONFLICT DO NOTHING
"""
_REFER = """
INSERT INTO table_run_refs (task_id, epoch, table_name, worker_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_THAT = {False: "", True: "= ?1"}
_LOOK = {
    which: looking(runs=_THAT[which[0]], done=_THAT[which[1]], makers=_THAT[which[2]])
    for which in product((False, True), repeat=3)
    if any(which)
}
"""The statement of `look` for one task, by whether it is among `runs`, `done` and `makers`."""

_AROUND = AROUND.format(groups="groups", wanted="IN (SELECT value FROM json_each(?1))")
_PIN = """
INSERT INTO table_pin_refs (task_id, table_name, freed) VALUES (?, ?, false)
ON CONFLICT (task_id, table_name) DO UPDATE SET freed = false
"""
_UNPIN = "DELETE FROM table_pin_refs WHERE task_id = ? AND table_name = ?"
_FREE = "UPDATE table_pin_refs SET freed = true WHERE task_id = ? AND table_name = ? AND NOT freed"
_END = """
INSERT INTO table_run_refs (task_id, epoch, table_name, worker_id, freed) VALUES (?, ?, ?, 0, true)
ON CONFLICT (task_id, epoch, table_name) DO UPDATE SET freed = true
"""
_GONE = "DELETE FROM table_run_refs WHERE task_id = ? AND epoch = ? AND table_name = ?"
_FORGET = "DELETE FROM table_context_refs WHERE table_name = ?"


class SqliteTables:
    """SQLite's implementation of `TableMoves`."""

    at_once: ClassVar[bool] = False

    async def hold(self, session: Session, worker_id: int, holds: Sequence[Hold], *, refer: bool = True) -> set[Key]:
        driver = driver_of(session.writing)
        if not refer:
            rows = [(table, hold.task_id, hold.epoch, worker_id) for hold in holds for table in hold.tables]
            return {row[1:3] for row in rows if driver.execute(_REGISTER_FENCED, row).rowcount}
        passed: set[Key] = set()
        for task_id, epoch, tables in holds:
            facts = driver.execute(_FENCE, (task_id, epoch, worker_id)).fetchone()
            if facts is not None:
                passed.add((task_id, epoch))
                driver.executemany(_REGISTER, [(table, task_id, epoch, *facts) for table in tables])
                driver.executemany(_REFER, [(task_id, epoch, table, worker_id) for table in tables])
        return passed

    async def look(
        self, session: Session, runs: Collection[int], done: Collection[int], makers: Collection[int]
    ) -> list[Seen]:
        driver = driver_of(session.connection)
        seen: list[Seen] = []
        for task in dict.fromkeys((*runs, *done, *makers)):
            sql = _LOOK[task in runs, task in done, task in makers]
            seen += map(Seen._make, driver.execute(sql, (task,)))
        groups = groups_of(seen)
        return with_groups(seen, driver.execute(_AROUND, (json.dumps(groups),)).fetchall()) if groups else seen

    async def change(self, session: Session, changes: Changes) -> None:
        driver = driver_of(session.writing)
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
        driver = driver_of(session.writing)
        driver.executemany(f"{_GONE} AND freed", refs)
        driver.executemany(f"{_UNPIN} AND freed", pins)
