"""What runs report of tables: those they hand on are pinned for whoever needs them, and all references of theirs end.

A pin is added by whoever holds the table already, in the transaction in which it stops to hold it: at no instant is a
table that someone needs without a reference. All of it happens after the tasks are locked, and before groups and jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Select, Update, delete, select, tuple_, update

from aaiclick.orchestration.models import Done, Report
from aaiclick.orchestration.rules.run_tables import run_prefix, tables_named
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store.absent import insert_or_change
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import (
    dependencies,
    groups,
    table_context_refs,
    table_pin_refs,
    table_run_refs,
    tasks,
)

Key = tuple[int, int]
"""A run: (task, epoch)."""

Pin = tuple[int, str]
"""Who needs which table: (task, or job, and table)."""

T = TypeVar("T")

IN_ONE_STATEMENT = 500
"""How many names are in one statement: databases limit them."""

NO_MORE = (TaskStatus.COMPLETED, TaskStatus.CANCELLED)
"""Tasks that need their inputs no more; those that failed may be tried again by someone."""


async def settle_tables(session: Session, reports: Sequence[Report], accepted: Iterable[Key]) -> None:
    """Reports of runs that hold tables: publish what the accepted ones hand on, and end the references of all.

    A report that comes too late frees what its own run held, and nothing of the run that took its place (pitfall T13).
    """
    counted = set(accepted)
    held = await _held_by(session, [(report.task_id, report.epoch) for report in reports])
    done = [item for item in reports if isinstance(item, Done) and (item.task_id, item.epoch) in counted]
    pins = await _wanted(session, {item.task_id: _named(item, held) for item in done})
    pins |= {pin for item in done for pin in _wanted_by_children(item, held)}
    await pin(session, pins)
    await free_pins(session, [item.task_id for item in done])
    await _forget_unmade(session, reports, held, {table for _, table in pins})
    await free_runs(session, list(held))


async def _held_by(session: Session, runs: Sequence[Key]) -> dict[Key, set[str]]:
    """The tables that these runs hold."""
    held: dict[Key, set[str]] = {run: set() for run in runs}
    ids = session.dialect.pack(sorted({task for task, _ in runs}))
    for row in await session.rows(session.built(_refs_of), {"ids": ids}):
        if (row.task_id, row.epoch) in held:
            held[row.task_id, row.epoch].add(row.table_name)
    return held


def _refs_of(dialect: Dialect) -> Select[Any]:
    chosen = select(table_run_refs.c.task_id, table_run_refs.c.epoch, table_run_refs.c.table_name)
    return chosen.where(dialect.in_ids(table_run_refs.c.task_id))


def _named(done: Done, held: Mapping[Key, set[str]]) -> set[str]:
    return tables_named(done.result_json) & held[done.task_id, done.epoch]


def _wanted_by_children(done: Done, held: Mapping[Key, set[str]]) -> set[Pin]:
    """What the arguments of the tasks that the run made refer to."""
    if done.children is None:
        return set()
    mine = held[done.task_id, done.epoch]
    return {(new.id, table) for new in done.children.tasks for table in tables_named(new.kwargs_json) & mine}


async def _wanted(session: Session, named: Mapping[int, set[str]]) -> set[Pin]:
    """Who needs these results: all that depend on their tasks, or on groups around them; the job, if it keeps them."""
    makers = sorted(task for task, tables in named.items() if tables)
    if not makers:
        return set()
    rows = await session.rows(session.built(_makers), {"ids": session.dialect.pack(makers)})
    around = await _groups_around(session, {row.group_id for row in rows if row.group_id is not None})
    waiting = await _consumers_of(session, [*makers, *around])
    pins: set[Pin] = set()
    for row in rows:
        sources = [row.id, *_chain(row.group_id, around)]
        consumers = {consumer for source in sources for consumer in waiting.get(source, ())}
        if row.kept:
            consumers.add(row.job_id)
        pins |= {(consumer, table) for consumer in consumers for table in named[row.id]}
    return pins


def _makers(dialect: Dialect) -> Select[Any]:
    return select(tasks.c.id, tasks.c.job_id, tasks.c.group_id, tasks.c.kept).where(dialect.in_ids(tasks.c.id))


async def _groups_around(session: Session, inner: set[int]) -> dict[int, int | None]:
    """These groups and all that they are inside of, each with the one around it."""
    around: dict[int, int | None] = {}
    left = set(inner)
    while left:
        which = session.any_of(groups.c.id, sorted(left))
        rows = await session.rows(select(groups.c.id, groups.c.parent_group_id).where(which))
        around |= {row.id: row.parent_group_id for row in rows}
        left = {parent for parent in around.values() if parent is not None} - around.keys() if rows else set()
    return around


def _chain(group: int | None, around: Mapping[int, int | None]) -> list[int]:
    chain: list[int] = []
    while group is not None:
        chain.append(group)
        group = around.get(group)
    return chain


async def _consumers_of(session: Session, nodes: Sequence[int]) -> dict[int, list[int]]:
    """The tasks that wait for these nodes and whose arguments refer to results."""
    consumers: dict[int, list[int]] = {}
    for row in await session.rows(session.built(_waiting), {"ids": session.dialect.pack(sorted(nodes))}):
        consumers.setdefault(row.previous_id, []).append(row.next_id)
    return consumers


def _waiting(dialect: Dialect) -> Select[Any]:
    return (
        select(dependencies.c.previous_id, dependencies.c.next_id)
        .join(tasks, tasks.c.id == dependencies.c.next_id)
        .where(
            dialect.in_ids(dependencies.c.previous_id),
            dependencies.c.next_type == "task",
            tasks.c.needs_inputs,
            tasks.c.status.not_in(NO_MORE),
        )
    )


# ---------------------------------------------------------------- rows


async def pin(session: Session, pins: Iterable[Pin]) -> None:
    """Note who needs which table; the caller holds the tables, or has locked their rows and found them.

    A pin that has ended and is there still counts again: written, so that nobody who has looked deletes it.
    """
    wanted = sorted(set(pins))
    rows = [{"task_id": task, "table_name": table, "freed": False} for task, table in wanted]
    await insert_or_change(session, table_pin_refs, rows, "freed")


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
        which = tuple_(table_run_refs.c.task_id, table_run_refs.c.epoch).in_(sorted(set(runs)))
        await session.run(update(table_run_refs).where(which, ~table_run_refs.c.freed).values(freed=True))


async def _forget_unmade(
    session: Session, reports: Sequence[Report], held: Mapping[Key, set[str]], pinned: set[str]
) -> None:
    """Names that runs took and did not use, and tables that they have dropped themselves."""
    unmade: list[str] = []
    for report in reports:
        if report.made is not None:
            prefix = f"{run_prefix(report.task_id, report.epoch)}_"
            mine = {table for table in held[report.task_id, report.epoch] if table.startswith(prefix)}
            unmade += mine - set(report.made) - pinned
    await forget_tables(session, unmade)


async def forget_tables(session: Session, names: Sequence[str]) -> None:
    """These tables are not in ClickHouse: nothing is to be known of them."""
    references: Any
    for batch in in_batches(sorted(names)):
        for references in (table_run_refs, table_pin_refs, table_context_refs):
            await session.run(delete(references).where(references.c.table_name.in_(batch)))


def in_batches(items: Sequence[T], size: int = IN_ONE_STATEMENT) -> Iterator[Sequence[T]]:
    """A statement's worth at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
