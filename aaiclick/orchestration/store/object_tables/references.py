"""References to tables when runs report: tables in results are pinned for the consumers, the runs' references end.

A pin is added by the transaction that ends the run's own reference, so a table that is needed always has a reference.
In the order of locks, this comes after the tasks and before groups and jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TypeVar

from sqlalchemy import Delete, Update, delete, tuple_, update

from aaiclick.orchestration.models import Done, Report
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.rules.values.run_tables import run_prefix, run_table, tables_named
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.dialects.table_moves import Changes, Key, Pin, Seen
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import table_context_refs, table_pin_refs, table_run_refs

T = TypeVar("T")

IN_ONE_STATEMENT = 500
"""Names in one statement: databases limit the number of parameters."""

PINNED_AT_ONCE = 5_000
"""Pins that one statement writes: they are sent as a single value."""

NO_MORE = (TaskStatus.COMPLETED, TaskStatus.CANCELLED, TaskStatus.SKIPPED)
"""Statuses in which a task does not need its inputs any more. A failed task may still be run again, by a clear."""


async def settle_tables(session: Session, reports: Sequence[Report], accepted: Iterable[Key]) -> None:
    """Pin the tables that accepted runs returned for their consumers, and end the references of all reporting runs.

    A run that reports has no body any more. With its claim, it held the tables that its task is pinned on, its first
    table, and the tables that it asked for. A late report frees only what its own run still held, and nothing of the
    run that replaced it (pitfall T13).
    """
    counted = set(accepted)
    done = {item.task_id: item for item in reports if isinstance(item, Done) and (item.task_id, item.epoch) in counted}
    named = {task: tables_named(item.result_json) for task, item in done.items()}
    runs, makers = {report.task_id for report in reports}, {task for task, tables in named.items() if tables}
    seen = await session.dialect.tables.look(session, runs, done.keys(), makers)
    held = _held_by(reports, counted, seen)
    pins: set[Pin] = set()
    for task, item in done.items():
        mine = held[task, item.epoch]
        if mine.needing:
            pins |= _wanted(mine, named[task])
        if item.children is not None:
            pins |= _wanted_by_children(item.children, mine.all)
    changes = Changes()
    _let_go(changes, held, {table for _, table in pins})
    if len(pins) <= PINNED_AT_ONCE:
        changes.pinned = sorted(pins)
    else:
        await pin(session, pins)
    await session.dialect.tables.change(session, changes)


class _Holding:
    """The tables that one run holds, and the tasks or jobs that need its result."""

    __slots__ = ("first", "given", "made", "needing", "referred")

    def __init__(self, first: str | None, made: Sequence[str] | None) -> None:
        self.first = first
        self.made = None if made is None else frozenset(made)
        """The run's own tables that may exist in ClickHouse; None if the worker does not know."""
        self.referred: set[str] = set()
        self.given: list[str] = []
        self.needing: list[int] = []

    @property
    def all(self) -> set[str]:
        return {*self.own, *self.given}

    @property
    def own(self) -> set[str]:
        """The tables that the run asked for, and its first table, if it was accepted."""
        return self.referred if self.first is None else self.referred | {self.first}


def _held_by(reports: Sequence[Report], counted: set[Key], seen: Sequence[Seen]) -> dict[Key, _Holding]:
    held: dict[Key, _Holding] = {}
    done: dict[int, _Holding] = {}
    for report in reports:
        run = (report.task_id, report.epoch)
        held[run] = mine = _Holding(run_table(*run, 1) if run in counted else None, report.made)
        if run in counted:
            done[report.task_id] = mine
    for kind, task, other, table in seen:
        if kind == "ref":
            if table is not None and (task, other) in held:
                held[task, other].referred.add(table)
        elif kind == "pin":
            if table is not None:
                done[task].given.append(table)
        else:
            done[task].needing.append(other)
    return held


def _wanted(mine: _Holding, named: Set[str]) -> set[Pin]:
    """Return a pin for each consumer on each table of the result that the run holds."""
    handed = named & mine.all
    return {(who, table) for who in mine.needing for table in handed}


def _wanted_by_children(children: Children, mine: set[str]) -> set[Pin]:
    """Return a pin for each task that the run made, on the tables held by the run that its arguments refer to."""
    return {(new.id, table) for new in children.tasks for table in tables_named(new.kwargs_json) & mine}


def _let_go(changes: Changes, held: Mapping[Key, _Holding], pinned: set[str]) -> None:
    """Add to `changes` the end of all pins of completed tasks and of all references of these runs.

    A reference to a table that is pinned in the same change is deleted: the end of that pin will ask for a check. Any
    other reference is marked instead, and so asks the leader to check the table. A table that was registered and not
    made is forgotten.
    """
    for (task, epoch), mine in held.items():
        for table in sorted(mine.given):
            (changes.unpinned if table in pinned else changes.freed).append((task, table))
        for table in sorted(mine.own):
            if table not in pinned and _is_unmade(table, (task, epoch), mine.made):
                changes.forgotten.append(table)
            elif table not in pinned:
                changes.ended.append((task, epoch, table))
                continue
            if table in mine.referred:
                changes.gone.append((task, epoch, table))


def _is_unmade(table: str, run: Key, made: Set[str] | None) -> bool:
    """Return whether a run registered this table of its own and never made it, or has dropped it."""
    return made is not None and table not in made and table.startswith(f"{run_prefix(*run)}_")


# ---------------------------------------------------------------- rows


async def pin(session: Session, pins: Iterable[Pin]) -> None:
    """Pin tasks or jobs on tables; the caller holds the tables, or has locked their rows and found them.

    A pin that is marked `freed` becomes live again. It is written anew, so that a concurrent `mark_unneeded`, which saw
    it freed, does not delete it.
    """
    for batch in in_batches(sorted(set(pins)), PINNED_AT_ONCE):
        await session.dialect.tables.change(session, Changes(pinned=list(batch)))


async def unpin(session: Session, holder: int, tables: Sequence[str]) -> None:
    """Mark the pins of one task or job on these tables as freed."""
    mine = (table_pin_refs.c.task_id == holder, table_pin_refs.c.table_name.in_(tables), ~table_pin_refs.c.freed)
    await session.run(update(table_pin_refs).where(*mine).values(freed=True))


async def free_pins(session: Session, task_ids: Sequence[int]) -> None:
    """Mark all pins of these tasks as freed."""
    if task_ids:
        await session.run(session.built(_free_pins), {"ids": session.dialect.pack(sorted(task_ids))})


def _free_pins(dialect: Dialect) -> Update:
    mine = (dialect.in_ids(table_pin_refs.c.task_id), ~table_pin_refs.c.freed)
    return update(table_pin_refs).where(*mine).values(freed=True)


async def free_runs(session: Session, runs: Sequence[Key]) -> None:
    """Mark the references of these runs as freed; the caller knows that their bodies have ended."""
    ref = table_run_refs.c
    for batch in in_batches(sorted(set(runs))):
        theirs = session.any_of(ref.task_id, sorted({task for task, _ in batch}))  # lets MariaDB use an index
        which = tuple_(ref.task_id, ref.epoch).in_(batch)
        await session.run(update(table_run_refs).where(theirs, which, ~ref.freed).values(freed=True))


async def forget_tables(session: Session, names: Sequence[str]) -> None:
    """Delete all rows of these tables, which are not in ClickHouse any more."""
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
    """Yield the items in slices of `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
