"""Which tables may go. Whoever drops one decides under the lock of its row, and it is gone from that commit on.

References that end are marked, not deleted: they tell where to look. They are deleted by whoever has looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Row,
    Select,
    Update,
    and_,
    bindparam,
    exists,
    func,
    literal,
    or_,
    select,
    union,
    update,
)

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.rules.states import LIVE_TASK
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.object_tables.references import NO_MORE, free_pins, free_runs
from aaiclick.orchestration.store.object_tables.references import forget_tables as forget_tables
from aaiclick.orchestration.store.session import Session
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

_LIVE = sorted(LIVE_TASK)

LOOKED_AT_ONCE = 500
DROPPED_AT_ONCE = 100


async def mark_unneeded(session: Session) -> int:
    """Look at tables of which references have ended, and mark those that nobody needs any more; gives what it saw."""
    most = {"most": LOOKED_AT_ONCE}
    refs = [tuple(row) for row in await session.rows(session.built(_freed_refs), most)]
    pins = [tuple(row) for row in await session.rows(session.built(_freed_pins), most)]
    names = {row[-1] for row in (*refs, *pins)}
    if not names:
        return 0
    await mark_those(session, names)
    # exactly those that were seen: one that has ended since asks for another look
    await session.dialect.tables.delete_freed(session, sorted(refs), sorted(pins))
    return len(refs) + len(pins)


def _freed_refs(_: Dialect) -> Select[Any]:
    ref = table_run_refs.c
    return select(ref.task_id, ref.epoch, ref.table_name).where(_is_over()).limit(bindparam("most"))


def _is_over() -> ColumnElement[bool]:
    """A reference that has ended, of a run whose claim has ended too: before, its tables would be found in use.

    A number for each, since PostgreSQL would make a join of a condition, and read all references and all tasks for it.
    """
    ref = table_run_refs.c
    mine = (tasks.c.id == ref.task_id, tasks.c.epoch == ref.epoch, tasks.c.status.in_(_LIVE))
    claims_left = select(func.count()).select_from(tasks).where(*mine).correlate(table_run_refs).scalar_subquery()
    return and_(ref.freed, claims_left == 0)


def _freed_pins(_: Dialect) -> Select[Any]:
    pin = table_pin_refs.c
    return select(pin.task_id, pin.table_name).where(pin.freed).limit(bindparam("most"))


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
    return await session.rows(session.built(_lock), {"ids": session.dialect.pack(sorted(names))})


def _lock(dialect: Dialect) -> Select[Any]:
    known = table_context_refs.c
    chosen = select(known.table_name, known.preserved).where(dialect.in_ids(known.table_name))
    return chosen.order_by(known.table_name).with_for_update()


async def _needed(session: Session, names: Iterable[str]) -> set[str]:
    """Those that a run uses or makes or a task needs, seen at one instant: a reference may become another."""
    rows = await session.rows(session.built(_live), {"ids": session.dialect.pack(sorted(names))})
    return {row.table_name for row in rows}


def _live(dialect: Dialect) -> CompoundSelect[Any]:
    each = (table_run_refs.c, table_pin_refs.c)
    referred = [select(ref.table_name).where(dialect.in_ids(ref.table_name), ~ref.freed) for ref in each]
    made = select(table_context_refs.c.table_name).where(dialect.in_ids(table_context_refs.c.table_name), being_made())
    return union(*referred, made)


def being_made() -> ColumnElement[bool]:
    """Whether the run that makes a known table has its claim."""
    known = table_context_refs.c
    return exists().where(tasks.c.id == known.context_id, tasks.c.epoch == known.epoch, tasks.c.status.in_(_LIVE))


async def mark_dropping(session: Session, names: Sequence[str]) -> None:
    """From this commit on these tables are gone."""
    if names:
        await session.run(session.built(_mark), {"ids": session.dialect.pack(names)})


def _mark(dialect: Dialect) -> Update:
    return update(table_context_refs).where(dialect.in_ids(table_context_refs.c.table_name)).values(dropping=True)


# ---------------------------------------------------------------- what is to be dropped


async def next_to_drop(session: Session, after: str = "") -> list[str]:
    """Tables that are as good as gone, in the order of their names."""
    rows = await session.rows(session.built(_to_drop), {"after": after, "most": DROPPED_AT_ONCE})
    return [row.table_name for row in rows]


def _to_drop(_: Dialect) -> Select[Any]:
    known = table_context_refs.c
    chosen = select(known.table_name).where(known.dropping, known.table_name > bindparam("after"))
    return chosen.order_by(known.table_name).limit(bindparam("most"))


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


def strays() -> ColumnElement[bool]:
    """Whether there are references of workers that are gone."""
    return exists(select(literal(1)).select_from(table_run_refs).where(_stray()))


def loose_tables() -> ColumnElement[bool]:
    """Whether there is a table to look at or to drop."""
    return or_(
        exists(select(literal(1)).select_from(table_run_refs).where(_is_over())),
        exists().where(table_pin_refs.c.freed),
        exists().where(table_context_refs.c.dropping),
    )
