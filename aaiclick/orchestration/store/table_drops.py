"""Which tables may go. Whoever drops one decides under the lock of its row, and it is gone from that commit on.

References that end are marked, not deleted: they tell where to look. They are deleted by whoever has looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, delete, exists, literal, or_, select, tuple_, union, update

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.table_refs import NO_MORE, free_pins, free_runs
from aaiclick.orchestration.store.table_refs import forget_tables as forget_tables
from aaiclick.orchestration.store.tables import (
    claims,
    jobs,
    table_context_refs,
    table_pin_refs,
    table_run_refs,
    tasks,
    workers,
)
from aaiclick.orchestration.store.transitions import lock_tasks

LOOKED_AT_ONCE = 500
DROPPED_AT_ONCE = 100


async def mark_unneeded(session: Session) -> int:
    """Look at tables of which references have ended, and mark those that nobody needs any more; gives what it saw."""
    refs = await session.rows(select(table_run_refs).where(table_run_refs.c.freed).limit(LOOKED_AT_ONCE))
    pins = await session.rows(select(table_pin_refs).where(table_pin_refs.c.freed).limit(LOOKED_AT_ONCE))
    names = {row.table_name for row in (*refs, *pins)}
    if not names:
        return 0
    await mark_those(session, names)
    await _delete_freed(session, refs, pins)
    return len(refs) + len(pins)


async def mark_given(session: Session, names: Sequence[str]) -> None:
    """Tables that were made for a job which did not come to be: they go, unless it did."""
    await mark_those(session, names, preserved=True)


async def mark_those(session: Session, names: Iterable[str], *, preserved: bool = False) -> None:
    """Mark those of these tables that nobody needs; `preserved`: also those that are kept until their job's time."""
    locked = await lock_rows(session, names)
    needed = await _needed(session, names)  # read after the lock: what was added meanwhile is seen
    free = [row.table_name for row in locked if preserved or not row.preserved]
    await mark_dropping(session, [name for name in free if name not in needed])


async def lock_rows(session: Session, names: Iterable[str]) -> Sequence[Row[Any]]:
    """Let nobody add a reference to these tables, or drop them, meanwhile."""
    return await session.rows(
        select(table_context_refs.c.table_name, table_context_refs.c.preserved)
        .where(table_context_refs.c.table_name.in_(sorted(names)))
        .order_by(table_context_refs.c.table_name)
        .with_for_update()
    )


async def _needed(session: Session, names: Iterable[str]) -> set[str]:
    """Those that a run uses or a task needs, seen at one instant: a reference may become another."""
    wanted = sorted(names)
    rows = await session.rows(
        union(*(_live(table, table.c.table_name.in_(wanted)) for table in (table_run_refs, table_pin_refs)))
    )
    return {row.table_name for row in rows}


def _live(table: Any, which: ColumnElement[bool]) -> Select[Any]:
    return select(table.c.table_name).where(which, ~table.c.freed)


async def mark_dropping(session: Session, names: Sequence[str]) -> None:
    """From this commit on these tables are gone."""
    if names:
        which = table_context_refs.c.table_name.in_(names)
        await session.run(update(table_context_refs).where(which).values(dropping=True))


async def _delete_freed(session: Session, refs: Sequence[Row[Any]], pins: Sequence[Row[Any]]) -> None:
    """Exactly those that were seen: one that has ended since asks for another look."""
    if refs:
        key = tuple_(table_run_refs.c.task_id, table_run_refs.c.epoch, table_run_refs.c.table_name)
        seen = sorted((row.task_id, row.epoch, row.table_name) for row in refs)
        await session.run(delete(table_run_refs).where(key.in_(seen), table_run_refs.c.freed))
    if pins:
        key = tuple_(table_pin_refs.c.task_id, table_pin_refs.c.table_name)
        seen_pins = sorted((row.task_id, row.table_name) for row in pins)
        await session.run(delete(table_pin_refs).where(key.in_(seen_pins), table_pin_refs.c.freed))


# ---------------------------------------------------------------- what is to be dropped


async def next_to_drop(session: Session, after: str = "") -> list[str]:
    """Tables that are as good as gone, in the order of their names."""
    chosen = (
        select(table_context_refs.c.table_name)
        .where(table_context_refs.c.dropping, table_context_refs.c.table_name > after)
        .order_by(table_context_refs.c.table_name)
        .limit(DROPPED_AT_ONCE)
    )
    return [row.table_name for row in await session.rows(chosen)]


# ---------------------------------------------------------------- what nobody said


def _stray() -> ColumnElement[bool]:
    """References of runs that have no claim any more and whose worker is gone: nobody will say that they ended."""
    alive = exists().where(workers.c.id == table_run_refs.c.worker_id, workers.c.status != WorkerStatus.STOPPED)
    claimed = exists().where(
        claims.c.worker_id == table_run_refs.c.worker_id,
        claims.c.task_id == table_run_refs.c.task_id,
        claims.c.epoch == table_run_refs.c.epoch,
    )
    return and_(~table_run_refs.c.freed, ~alive, ~claimed)


async def free_strays(session: Session) -> int:
    """What workers held that are gone; a session that is over is never alive again."""
    rows = await session.rows(
        select(table_run_refs.c.task_id, table_run_refs.c.epoch).where(_stray()).distinct().limit(LOOKED_AT_ONCE)
    )
    await free_runs(session, [(row.task_id, row.epoch) for row in rows])
    return len(rows)


async def free_idle_pins(session: Session) -> int:
    """Pins of tasks that ended without having used them, or that are gone."""
    ended = exists().where(tasks.c.id == table_pin_refs.c.task_id, tasks.c.status.in_(NO_MORE))
    known = exists().where(tasks.c.id == table_pin_refs.c.task_id) | exists().where(
        jobs.c.id == table_pin_refs.c.task_id
    )
    idle = select(table_pin_refs.c.task_id).where(~table_pin_refs.c.freed, or_(ended, ~known))
    found = {row.task_id for row in await session.rows(idle.distinct().limit(LOOKED_AT_ONCE))}
    cleared = {row.id for row in await lock_tasks(session, sorted(found)) if row.status not in NO_MORE}
    await free_pins(session, sorted(found - cleared))
    return len(found - cleared)


def questions() -> list[ColumnElement[bool]]:
    """Whether there are references of workers that are gone; whether there is a table to look at or to drop."""
    return [
        exists(select(literal(1)).select_from(table_run_refs).where(_stray())),
        or_(
            exists().where(table_run_refs.c.freed),
            exists().where(table_pin_refs.c.freed),
            exists().where(table_context_refs.c.dropping),
        ),
    ]
