"""References to tables on MariaDB: statements that can be sent together form one compound statement.

Each statement joins the given rows, as a JSON table, with the stored ones, in this order. So each stored row is looked
up by its whole key. For a list of tuples, MariaDB uses no index range and reads the whole table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aaiclick.orchestration.store.dialects.contract import Connection, driver_of
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
    packed,
    with_groups,
)

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session

_NAME = "VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
_PINS = f"JSON_TABLE(%s, '$[*]' COLUMNS (task_id BIGINT PATH '$[0]', table_name {_NAME} PATH '$[1]')) AS said"
_REFS = (
    "JSON_TABLE(%s, '$[*]' COLUMNS (task_id BIGINT PATH '$[0]', epoch INT PATH '$[1]',"
    f" table_name {_NAME} PATH '$[2]')) AS said"
)
_WANTED = (
    "JSON_TABLE(%s, '$[*]' COLUMNS (task_id BIGINT PATH '$[0]', epoch INT PATH '$[1]',"
    f" table_name {_NAME} PATH '$[2]', worker_id BIGINT PATH '$[3]')) AS said"
)
_THAT_PIN = "STRAIGHT_JOIN table_pin_refs AS pin ON pin.task_id = said.task_id AND pin.table_name = said.table_name"
_THAT_REF = (
    "STRAIGHT_JOIN table_run_refs AS ref FORCE INDEX (PRIMARY)"
    " ON ref.task_id = said.task_id AND ref.epoch = said.epoch AND ref.table_name = said.table_name"
)

_FENCE = (
    "SELECT id, epoch FROM tasks WHERE id IN ({ids}) AND worker_id = %s AND status IN ('claimed', 'running')"
    " ORDER BY id FOR UPDATE"
)
_REGISTER = (
    "INSERT IGNORE INTO table_context_refs (table_name, context_id, job_id, epoch, preserved, created_at)"
    " SELECT said.table_name, tasks.id, tasks.job_id, tasks.epoch, preservation_mode = 'full', tasks.claimed_at"
    f" FROM {_REFS} STRAIGHT_JOIN tasks ON tasks.id = said.task_id STRAIGHT_JOIN jobs ON jobs.id = tasks.job_id"
)
_REFER = (
    "INSERT IGNORE INTO table_run_refs (task_id, epoch, table_name, worker_id)"
    f" SELECT task_id, epoch, table_name, worker_id FROM {_WANTED}"
)
_PIN = (
    f"INSERT INTO table_pin_refs (task_id, table_name, freed) SELECT task_id, table_name, false FROM {_PINS}"
    " ON DUPLICATE KEY UPDATE freed = false"
)
_UNPIN = f"DELETE pin FROM {_PINS} {_THAT_PIN}"
_FREE = f"UPDATE {_PINS} {_THAT_PIN} SET pin.freed = true WHERE NOT pin.freed"
_END = (
    "INSERT INTO table_run_refs (task_id, epoch, table_name, worker_id, freed)"
    f" SELECT task_id, epoch, table_name, 0, true FROM {_REFS} ON DUPLICATE KEY UPDATE freed = true"
)
_GONE = f"DELETE ref FROM {_REFS} {_THAT_REF}"
_FORGET = (
    f"DELETE known FROM JSON_TABLE(%s, '$[*]' COLUMNS (table_name {_NAME} PATH '$')) AS said"
    " STRAIGHT_JOIN table_context_refs AS known ON known.table_name = said.table_name"
)


class MariadbTables:
    """MariaDB's implementation of `TableMoves`."""

    at_once: ClassVar[bool] = False

    async def hold(self, session: Session, worker_id: int, holds: Sequence[Hold], *, refer: bool = True) -> set[Key]:
        ids = sorted(hold.task_id for hold in holds)
        rows = await _ask(session.writing, _FENCE.format(ids=_listed(ids)), [worker_id])
        fenced = {(row[0], row[1]) for row in rows}
        passed = [hold for hold in holds if hold[:2] in fenced]
        wanted = [(hold.task_id, hold.epoch, table) for hold in passed for table in hold.tables]
        refs = [(*each, worker_id) for each in wanted] if refer else []
        await _together(session, {_REGISTER: wanted, _REFER: refs})
        return fenced & {(hold.task_id, hold.epoch) for hold in holds}

    async def look(
        self, session: Session, runs: Collection[int], done: Collection[int], makers: Collection[int]
    ) -> list[Seen]:
        which = {"runs": runs, "done": done, "makers": makers}
        if not any(which.values()):
            return []
        sql = looking(**{name: f"IN ({_listed(ids)})" if ids else "" for name, ids in which.items()})
        seen = [Seen._make(row) for row in await _ask(session.connection, sql)]
        groups = groups_of(seen)
        if not groups:
            return seen
        wanted = f"IN ({_listed(groups)})"
        return with_groups(seen, await _ask(session.connection, AROUND.format(groups="`groups`", wanted=wanted)))

    async def change(self, session: Session, changes: Changes) -> None:
        steps: dict[str, Sequence[Any]] = {
            _PIN: changes.pinned,
            _UNPIN: changes.unpinned,
            _FREE: changes.freed,
            _END: changes.ended,
            _GONE: changes.gone,
            _FORGET: changes.forgotten,
        }
        await _together(session, steps)

    async def delete_freed(self, session: Session, refs: Sequence[Ref], pins: Sequence[Pin]) -> None:
        await _together(session, {f"{_GONE} WHERE ref.freed": refs, f"{_UNPIN} WHERE pin.freed": pins})


def _listed(ids: Collection[int]) -> str:
    """Return ids as SQL text; `int` keeps anything else out."""
    return ", ".join(str(int(each)) for each in ids)


async def _together(session: Session, steps: dict[str, Sequence[Any]]) -> None:
    """Execute those of these statements that have rows, as one compound statement."""
    wanted = {sql: packed(rows) for sql, rows in steps.items() if rows}
    if wanted:
        body = "; ".join(wanted)
        await _ask(
            session.writing, body if len(wanted) == 1 else f"BEGIN NOT ATOMIC {body}; END", list(wanted.values())
        )


async def _ask(connection: Connection, sql: str, values: Sequence[Any] | None = None) -> Sequence[Sequence[Any]]:
    """Execute a statement with the driver: SQLAlchemy's overhead would be as large as the statement's own time."""
    async with driver_of(connection).cursor() as cursor:
        await cursor.execute(sql, values)
        rows: Sequence[Sequence[Any]] = await cursor.fetchall() if cursor.description else ()
        return rows
