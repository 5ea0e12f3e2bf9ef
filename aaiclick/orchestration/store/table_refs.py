"""What runs report of tables: those they hand on are pinned for whoever needs them, and all references of theirs end.

A pin is added by whoever holds the table already, in the transaction in which it stops to hold it: at no instant is a
table that someone needs without a reference. All of it happens after the tasks are locked, and before groups and jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Delete, Update, delete, tuple_, update

from aaiclick.orchestration.models import Done, Report
from aaiclick.orchestration.rules.run_tables import run_prefix, tables_named
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.dialects.table_moves import Changes, Key, Pin, Seen
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import table_context_refs, table_pin_refs, table_run_refs

T = TypeVar("T")

IN_ONE_STATEMENT = 500
"""How many names are in one statement: databases limit them."""

PINNED_AT_ONCE = 5_000
"""How many pins are written by one statement: they travel as one value."""

NO_MORE = (TaskStatus.COMPLETED, TaskStatus.CANCELLED)
"""Tasks that need their inputs no more; those that failed may be tried again by someone."""


async def settle_tables(session: Session, reports: Sequence[Report], accepted: Iterable[Key]) -> None:
    """Reports of runs that hold tables: publish what the accepted ones hand on, and end the references of all.

    A report that comes too late frees what its own run held, and nothing of the run that took its place (pitfall T13).
    """
    counted = set(accepted)
    done = [item for item in reports if isinstance(item, Done) and (item.task_id, item.epoch) in counted]
    named = {item.task_id: tables_named(item.result_json) for item in done}
    runs, makers = {report.task_id for report in reports}, {task for task, tables in named.items() if tables}
    seen = await session.dialect.tables.look(session, runs, named.keys(), makers)
    held = _held_by([(report.task_id, report.epoch) for report in reports], seen)
    pins = _wanted(seen, {item.task_id: named[item.task_id] & held[item.task_id, item.epoch] for item in done})
    pins |= {pin for item in done for pin in _wanted_by_children(item, held)}
    changes = Changes()
    _unpin(changes, seen, {item.task_id: held[item.task_id, item.epoch] for item in done})
    _let_go(changes, held, {table for _, table in pins}, _unmade(reports, held))
    if len(pins) <= PINNED_AT_ONCE:
        changes.pinned = sorted(pins)
    else:
        await pin(session, pins)
    await session.dialect.tables.change(session, changes)


def _held_by(runs: Sequence[Key], seen: Sequence[Seen]) -> dict[Key, set[str]]:
    """The tables that these runs hold."""
    held: dict[Key, set[str]] = {run: set() for run in runs}
    for kind, task, epoch, table in seen:
        if kind == "ref" and table is not None and (task, epoch) in held:
            held[task, epoch].add(table)
    return held


def _wanted_by_children(done: Done, held: Mapping[Key, set[str]]) -> set[Pin]:
    """What the arguments of the tasks that the run made refer to."""
    if done.children is None:
        return set()
    mine = held[done.task_id, done.epoch]
    return {(new.id, table) for new in done.children.tasks for table in tables_named(new.kwargs_json) & mine}


def _wanted(seen: Sequence[Seen], named: Mapping[int, set[str]]) -> set[Pin]:
    """Who needs these results."""
    return {
        (needing, table) for kind, task, needing, _ in seen if kind in ("consumer", "kept") for table in named[task]
    }


def _unpin(changes: Changes, seen: Sequence[Seen], held: Mapping[int, set[str]]) -> None:
    """Tasks that are done need their inputs no more.

    What the run held itself asks for a look by the end of that reference: the pin is deleted, and nobody has to see it.
    """
    for kind, task, _, table in seen:
        if kind == "pin" and table is not None:
            (changes.unpinned if table in held[task] else changes.freed).append((task, table))


def _let_go(changes: Changes, held: Mapping[Key, set[str]], pinned: set[str], unmade: set[str]) -> None:
    """The bodies of these runs are dead. Where a pin takes the place of a reference, its end will ask for the look."""
    changes.forgotten = sorted(unmade - pinned)
    known = pinned | unmade
    for (task, epoch), tables in held.items():
        for table in sorted(tables):
            (changes.gone if table in known else changes.ended).append((task, epoch, table))


def _unmade(reports: Sequence[Report], held: Mapping[Key, set[str]]) -> set[str]:
    """Names that runs took and did not use, and tables that they have dropped themselves."""
    unmade: set[str] = set()
    for report in reports:
        if report.made is not None:
            prefix = f"{run_prefix(report.task_id, report.epoch)}_"
            mine = {table for table in held[report.task_id, report.epoch] if table.startswith(prefix)}
            unmade |= mine - set(report.made)
    return unmade


# ---------------------------------------------------------------- rows


async def pin(session: Session, pins: Iterable[Pin]) -> None:
    """Note who needs which table; the caller holds the tables, or has locked their rows and found them.

    A pin that has ended and is there still counts again: written, so that nobody who has looked deletes it.
    """
    for batch in in_batches(sorted(set(pins)), PINNED_AT_ONCE):
        await session.dialect.tables.change(session, Changes(pinned=list(batch)))


async def unpin(session: Session, holder: int, tables: Sequence[str]) -> None:
    """A task, or a job, needs these tables no more."""
    mine = (table_pin_refs.c.task_id == holder, table_pin_refs.c.table_name.in_(tables), ~table_pin_refs.c.freed)
    await session.run(update(table_pin_refs).where(*mine).values(freed=True))


async def free_pins(session: Session, task_ids: Sequence[int]) -> None:
    """These tasks need their inputs no more."""
    if task_ids:
        await session.run(session.built(_free_pins), {"ids": session.dialect.pack(sorted(task_ids))})


def _free_pins(dialect: Dialect) -> Update:
    mine = (dialect.in_ids(table_pin_refs.c.task_id), ~table_pin_refs.c.freed)
    return update(table_pin_refs).where(*mine).values(freed=True)


async def free_runs(session: Session, runs: Sequence[Key]) -> None:
    """The bodies of these runs are dead: what they held may be dropped if nobody else needs it."""
    if runs:
        ref = table_run_refs.c
        theirs = session.any_of(ref.task_id, sorted({task for task, _ in runs}))  # so that MariaDB uses an index
        which = tuple_(ref.task_id, ref.epoch).in_(sorted(set(runs)))
        await session.run(update(table_run_refs).where(theirs, which, ~ref.freed).values(freed=True))


async def forget_tables(session: Session, names: Sequence[str]) -> None:
    """These tables are not in ClickHouse: nothing is to be known of them."""
    for batch in in_batches(sorted(names)):
        for build in (_forget_refs, _forget_pins, _forget_table):
            await session.run(session.built(build), {"ids": session.dialect.pack(batch)})


def _forget_refs(dialect: Dialect) -> Delete:
    return delete(table_run_refs).where(dialect.in_ids(table_run_refs.c.table_name))


def _forget_pins(dialect: Dialect) -> Delete:
    return delete(table_pin_refs).where(dialect.in_ids(table_pin_refs.c.table_name))


def _forget_table(dialect: Dialect) -> Delete:
    return delete(table_context_refs).where(dialect.in_ids(table_context_refs.c.table_name))


def in_batches(items: Sequence[T], size: int = IN_ONE_STATEMENT) -> Iterator[Sequence[T]]:
    """A statement's worth at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
