"""Which tables may be dropped. The decision is made under the lock of the table's row, and holds from its commit on.

References that end are marked `freed` and not deleted: they tell which tables to check. The check deletes them.
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
from aaiclick.orchestration.store.definitions.cache_tables import cache_entries
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
    """Check tables with freed references, and mark those that are not needed any more for dropping.

    Return the number of freed references and pins that were handled; 0 means that nothing is left to check.
    """
    most = {"most": LOOKED_AT_ONCE}
    refs = [tuple(row) for row in await session.rows(session.built(_freed_refs), most)]
    pins = [tuple(row) for row in await session.rows(session.built(_freed_pins), most)]
    names = {row[-1] for row in (*refs, *pins)}
    if not names:
        return 0
    await mark_those(session, names)
    # only the references seen above: one that was freed since then asks for another check
    await session.dialect.tables.delete_freed(session, sorted(refs), sorted(pins))
    return len(refs) + len(pins)


def _freed_refs(_: Dialect) -> Select[Any]:
    ref = table_run_refs.c
    return select(ref.task_id, ref.epoch, ref.table_name).where(_is_over()).limit(bindparam("most"))


def _is_over() -> ColumnElement[bool]:
    """Return the condition that a reference is freed and its run's claim has ended.

    While the run has its claim, its tables would be found in use. The claims are counted in a subquery, because
    PostgreSQL would turn an EXISTS into a join and read all references and all tasks.
    """
    ref = table_run_refs.c
    mine = (tasks.c.id == ref.task_id, tasks.c.epoch == ref.epoch, tasks.c.status.in_(_LIVE))
    claims_left = select(func.count()).select_from(tasks).where(*mine).correlate(table_run_refs).scalar_subquery()
    return and_(ref.freed, claims_left == 0)


def _freed_pins(_: Dialect) -> Select[Any]:
    pin = table_pin_refs.c
    return select(pin.task_id, pin.table_name).where(pin.freed).limit(bindparam("most"))


async def mark_given(session: Session, names: Sequence[str]) -> None:
    """Mark for dropping, preserved or not, tables that were made for a job whose submission failed.

    If the job was stored after all, its references keep them.
    """
    await mark_those(session, names, preserved=True)


async def mark_those(session: Session, names: Iterable[str], *, preserved: bool = False) -> None:
    """Lock these tables and mark for dropping those that are not needed; preserved ones only with `preserved`."""
    locked = await lock_rows(session, names)
    needed = await _needed(session, names)  # read after the lock, so that references added before it are seen
    free = [row.table_name for row in locked if preserved or not row.preserved]
    await mark_dropping(session, [name for name in free if name not in needed])


async def lock_rows(session: Session, names: Iterable[str]) -> Sequence[Row[Any]]:
    """Lock the rows of these tables, ordered by name, against new references and against dropping."""
    return await session.rows(session.built(_lock), {"ids": session.dialect.pack(sorted(names))})


def _lock(dialect: Dialect) -> Select[Any]:
    known = table_context_refs.c
    chosen = select(known.table_name, known.preserved).where(dialect.in_ids(known.table_name))
    return chosen.order_by(known.table_name).with_for_update()


async def _needed(session: Session, names: Iterable[str]) -> set[str]:
    """Return those of these tables that a run uses or makes, or that a task or job is pinned on.

    One statement, since a reference may be replaced by a pin between two.
    """
    rows = await session.rows(session.built(_live), {"ids": session.dialect.pack(sorted(names))})
    return {row.table_name for row in rows}


def _live(dialect: Dialect) -> CompoundSelect[Any]:
    each = (table_run_refs.c, table_pin_refs.c)
    referred = [select(ref.table_name).where(dialect.in_ids(ref.table_name), ~ref.freed) for ref in each]
    made = select(table_context_refs.c.table_name).where(dialect.in_ids(table_context_refs.c.table_name), being_made())
    return union(*referred, made)


def being_made() -> ColumnElement[bool]:
    """Return the condition that the run which made a registered table still has its claim."""
    known = table_context_refs.c
    return exists().where(tasks.c.id == known.context_id, tasks.c.epoch == known.epoch, tasks.c.status.in_(_LIVE))


async def mark_dropping(session: Session, names: Sequence[str]) -> None:
    """Mark these tables for dropping; from the commit on, no reference to them can be added."""
    if names:
        await session.run(session.built(_mark), {"ids": session.dialect.pack(names)})


def _mark(dialect: Dialect) -> Update:
    return update(table_context_refs).where(dialect.in_ids(table_context_refs.c.table_name)).values(dropping=True)


def is_remembered() -> ColumnElement[bool]:
    """Return the condition that a remembered result names a registered table."""
    pin = table_pin_refs.c
    mine = (pin.table_name == table_context_refs.c.table_name, ~pin.freed, cache_entries.c.id == pin.task_id)
    return exists().where(*mine)


# ---------------------------------------------------------------- tables to drop


async def next_to_drop(session: Session, after: str = "") -> list[str]:
    """Return up to DROPPED_AT_ONCE tables that are marked for dropping, by name, from after `after` on."""
    rows = await session.rows(session.built(_to_drop), {"after": after, "most": DROPPED_AT_ONCE})
    return [row.table_name for row in rows]


def _to_drop(_: Dialect) -> Select[Any]:
    known = table_context_refs.c
    chosen = select(known.table_name).where(known.dropping, known.table_name > bindparam("after"))
    return chosen.order_by(known.table_name).limit(bindparam("most"))


# ---------------------------------------------------------------- references that nobody ended


def _stray() -> ColumnElement[bool]:
    """Return the condition that a live reference has no claim and no live worker, so that no report will end it."""
    alive = exists().where(workers.c.id == table_run_refs.c.worker_id, workers.c.status != WorkerStatus.STOPPED)
    claimed = exists().where(
        claims.c.worker_id == table_run_refs.c.worker_id,
        claims.c.task_id == table_run_refs.c.task_id,
        claims.c.epoch == table_run_refs.c.epoch,
    )
    return and_(~table_run_refs.c.freed, ~alive, ~claimed)


async def free_strays(session: Session) -> int:
    """Free some references of runs whose worker is gone; return the number of runs.

    This is safe because a session that has ended never becomes live again.
    """
    rows = await session.rows(
        select(table_run_refs.c.task_id, table_run_refs.c.epoch).where(_stray()).distinct().limit(LOOKED_AT_ONCE)
    )
    await free_runs(session, [(row.task_id, row.epoch) for row in rows])
    return len(rows)


async def free_idle_pins(session: Session) -> int:
    """Free pins of tasks that have ended, or that have no row any more; return the number of tasks.

    The tasks are locked first; one that was cleared in between keeps its pins.
    """
    ended = exists().where(tasks.c.id == table_pin_refs.c.task_id, tasks.c.status.in_(NO_MORE))
    holders = (tasks.c.id, jobs.c.id, cache_entries.c.id)
    known = or_(*(exists().where(holder == table_pin_refs.c.task_id) for holder in holders))
    idle = select(table_pin_refs.c.task_id).where(~table_pin_refs.c.freed, or_(ended, ~known))
    found = {row.task_id for row in await session.rows(idle.distinct().limit(LOOKED_AT_ONCE))}
    cleared = {row.id for row in await lock_tasks(session, sorted(found)) if row.status not in NO_MORE}
    await free_pins(session, sorted(found - cleared))
    return len(found - cleared)


def strays() -> ColumnElement[bool]:
    """Return the condition that `free_strays` has something to do."""
    return exists(select(literal(1)).select_from(table_run_refs).where(_stray()))


def loose_tables() -> ColumnElement[bool]:
    """Return the condition that a table is to be checked or dropped."""
    return or_(
        exists(select(literal(1)).select_from(table_run_refs).where(_is_over())),
        exists().where(table_pin_refs.c.freed),
        exists().where(table_context_refs.c.dropping),
    )
