"""References to tables on PostgreSQL: each method is one statement, or two."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

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


def _given(number: int, kind: str) -> str:
    """Return an array parameter as a subquery, which hides its size from the planner.

    Otherwise PostgreSQL makes a plan for each value, at twice the cost.
    """
    return f"(SELECT ${number}::{kind}[])"


def _among(number: int) -> str:
    return f"= ANY ({_given(number, 'bigint')}::bigint[])"


# The conditions of the fence are checked again once the row is locked; epochs are compared with those of locked rows.
_HOLD = f"""
WITH fenced AS MATERIALIZED (
    SELECT id, epoch, job_id, claimed_at FROM tasks
    WHERE id {_among(2)} AND worker_id = $1 AND status IN ('claimed', 'running')
    ORDER BY id FOR NO KEY UPDATE
), run AS MATERIALIZED (
    SELECT fenced.* FROM fenced JOIN unnest({_given(2, "bigint")}, {_given(3, "int")}) AS said(id, epoch)
    ON said.id = fenced.id AND said.epoch = fenced.epoch
), wanted AS (
    SELECT * FROM unnest({_given(4, "bigint")}, {_given(5, "text")}) AS wanted(task_id, table_name)
), registered AS (
    INSERT INTO table_context_refs (table_name, context_id, job_id, epoch, preserved, created_at)
    SELECT table_name, run.id, run.job_id, run.epoch, preservation_mode = 'full', claimed_at
    FROM run JOIN wanted ON wanted.task_id = run.id JOIN jobs ON jobs.id = run.job_id
    ON CONFLICT DO NOTHING
), referred AS (
    INSERT INTO table_run_refs (task_id, epoch, table_name, worker_id)
    SELECT run.id, run.epoch, table_name, $1 FROM run JOIN wanted ON wanted.task_id = run.id WHERE $6::boolean
    ON CONFLICT DO NOTHING
)
SELECT id, epoch FROM run
"""
_LOOK = looking(runs=_among(1), done=_among(2), makers=_among(3))
_AROUND = AROUND.format(groups="groups", wanted=_among(1))


def _pins(first: int) -> str:
    return f"unnest({_given(first, 'bigint')}, {_given(first + 1, 'text')}) AS said(task_id, table_name)"


def _refs(first: int) -> str:
    each = ", ".join([_given(first, "bigint"), _given(first + 1, "int"), _given(first + 2, "text")])
    return f"unnest({each}) AS said(task_id, epoch, table_name)"


_THAT_PIN = "pin.task_id = said.task_id AND pin.table_name = said.table_name"
_THAT_REF = "ref.task_id = said.task_id AND ref.epoch = said.epoch AND ref.table_name = said.table_name"
_CHANGE = f"""
WITH pinned AS (
    INSERT INTO table_pin_refs (task_id, table_name, freed) SELECT *, false FROM {_pins(1)}
    ON CONFLICT (task_id, table_name) DO UPDATE SET freed = excluded.freed
), unpinned AS (
    DELETE FROM table_pin_refs AS pin USING {_pins(3)} WHERE {_THAT_PIN}
), freed AS (
    UPDATE table_pin_refs AS pin SET freed = true FROM {_pins(5)} WHERE {_THAT_PIN} AND NOT freed
), ended AS (
    INSERT INTO table_run_refs (task_id, epoch, table_name, worker_id, freed) SELECT *, 0, true FROM {_refs(7)}
    ON CONFLICT (task_id, epoch, table_name) DO UPDATE SET freed = excluded.freed
), gone AS (
    DELETE FROM table_run_refs AS ref USING {_refs(10)} WHERE {_THAT_REF}
)
DELETE FROM table_context_refs WHERE table_name = ANY ({_given(13, "text")}::text[])
"""
_DELETE_FREED = f"""
WITH gone AS (
    DELETE FROM table_run_refs AS ref USING {_refs(1)} WHERE {_THAT_REF} AND freed
)
DELETE FROM table_pin_refs AS pin USING {_pins(4)} WHERE {_THAT_PIN} AND freed
"""


class PostgresTables:
    """PostgreSQL's implementation of `TableMoves`."""

    at_once: ClassVar[bool] = True

    async def hold(self, session: Session, worker_id: int, holds: Sequence[Hold], *, refer: bool = True) -> set[Key]:
        wanted = [(hold.task_id, table) for hold in holds for table in hold.tables]
        runs = [hold[:2] for hold in holds]
        said = (worker_id, *_columns(runs, 2), *_columns(wanted, 2), refer)
        rows = await driver_of(session.writing).fetch(_HOLD, *said)
        return {(row[0], row[1]) for row in rows}

    async def look(
        self, session: Session, runs: Collection[int], done: Collection[int], makers: Collection[int]
    ) -> list[Seen]:
        driver = driver_of(session.connection)
        seen = [Seen._make(row) for row in await driver.fetch(_LOOK, list(runs), list(done), list(makers))]
        groups = groups_of(seen)
        return with_groups(seen, await driver.fetch(_AROUND, groups)) if groups else seen

    async def change(self, session: Session, changes: Changes) -> None:
        pins = (changes.pinned, changes.unpinned, changes.freed)
        refs = (changes.ended, changes.gone)
        values = [column for rows in pins for column in _columns(rows, 2)]
        values += [column for rows in refs for column in _columns(rows, 3)]
        await driver_of(session.writing).execute(_CHANGE, *values, changes.forgotten)

    async def delete_freed(self, session: Session, refs: Sequence[Ref], pins: Sequence[Pin]) -> None:
        await driver_of(session.writing).execute(_DELETE_FREED, *_columns(refs, 3), *_columns(pins, 2))


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Return one list of values for each column."""
    return [[row[at] for row in rows] for at in range(width)]
