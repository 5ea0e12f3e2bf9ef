"""Writing what a coordinator told into a replica's own file, with the place up to which it is there.

Everything is repeatable: rows replace those of the same key, and the place moves in the same transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Column, Integer, MetaData, Table, Text, delete, func, select

from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.replicas.replicated import (
    PAGE_ROWS_MAX,
    REPLICATED,
    Choice,
    Rows,
    columns_of,
    conditions,
    digest_of,
    key_of,
    read_page,
)
from aaiclick.orchestration.store.replicas.source import Changes, SourcePage
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, events, groups, jobs, runs, tasks, workers

ON_A_THREAD = 1_000
"""From this many rows on, they are written on a thread: the replica goes on answering meanwhile."""

replica_tables = MetaData()
"""The tables of a replica's file that no other database has."""

replica_state = Table(
    "replica_state",
    replica_tables,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
)

replica_callers = Table(
    "replica_callers",
    replica_tables,
    Column("digest", Text, primary_key=True),
    Column("caller", Text, nullable=False),
)
"""Tokens that the coordinator has accepted, by the digest of their text: they count while it is away."""


class ReplicaState(msgspec.Struct):
    """How far a replica is."""

    coordinator: str = ""
    """Its address."""
    installation: str = ""
    """The name of what it copies."""
    is_whole: bool = False
    """Whether the first copy is complete."""
    cursor: int = 0
    """All changes up to this event are here."""
    mark: str = ""
    """The time of that event."""
    as_of: str = ""
    """The coordinator's time of which this is."""
    looking: str = ""
    """The table that is being compared with the coordinator's, from start to end; nothing when all were."""
    looked_at: list[Any] | None = None
    """The key up to which it was."""
    then_cursor: int = 0
    then_mark: str = ""
    """Where following goes on once all tables were compared."""
    then_as_of: str = ""


async def read_state(session: Session) -> ReplicaState:
    """Return how far the replica is."""
    text = await session.scalar(select(replica_state.c.state))
    return msgspec.json.decode(text, type=ReplicaState) if text else ReplicaState()


async def write_state(session: Session, state: ReplicaState) -> None:
    """Write how far the replica is."""
    await session.run(delete(replica_state))
    await session.insert(replica_state, [{"slot": 1, "state": msgspec.json.encode(state).decode()}])


async def digest_here(session: Session, choice: Choice, limit: int) -> str:
    """Return the digest of the rows that a coordinator would answer with, if it had the same."""
    return digest_of(await read_page(session, choice, min(limit, PAGE_ROWS_MAX)))


async def put_page(session: Session, choice: Choice, page: SourcePage) -> int:
    """Make the rows of a page's stretch those of the page; return how many it has."""
    if page.same:
        return 0
    table = REPLICATED[choice.table]
    if choice.since is None:
        stretch = conditions(session, choice, page.last)
        if table is jobs:
            await _forget_missing_jobs(session, choice, page)
        await session.run(delete(table).where(*stretch))
    await put_rows(session, table, page.rows)
    return len(page.rows)


async def put_rows(session: Session, table: Table, rows: Rows) -> None:
    """Insert rows in place of those with the same keys."""
    if rows:
        names = [column.name for column in columns_of(table)]
        places = ", ".join("?" * len(names))
        insert = f"INSERT OR REPLACE INTO {table.name} ({', '.join(names)}) VALUES ({places})"  # noqa: S608 (our names)
        driver = driver_of(session.writing)
        if len(rows) < ON_A_THREAD:
            driver.executemany(insert, rows)
        else:
            await asyncio.to_thread(driver.executemany, insert, rows)


async def put_changes(session: Session, found: Changes) -> None:
    """Write the rows that events name, remove those that are gone, and write the events themselves."""
    for name, rows in found.rows.items():
        await put_rows(session, REPLICATED[name], rows)
    await _forget_tasks(session, set(found.task_ids) - _ids_in(found, "tasks"))
    await _forget_jobs(session, set(found.job_ids) - _ids_in(found, "jobs"))
    await put_rows(session, events, found.events)
    await session.run(delete(events).where(events.c.id < found.oldest))


async def cut_events(session: Session, last: int) -> None:
    """Delete the events after one: those of a coordinator whose database was restored to before them."""
    await session.run(delete(events).where(events.c.id > last))


async def put_workers(session: Session, rows: Rows, known: Iterable[int]) -> None:
    """Write the workers that the coordinator told of; of those asked for, the ones that it has no more are gone."""
    await session.run(delete(workers).where(session.any_of(workers.c.id, sorted(known))))
    await put_rows(session, workers, rows)


async def live_workers(session: Session) -> list[int]:
    """Return the workers that have not stopped, as far as is known here."""
    rows = await session.rows(select(workers.c.id).where(workers.c.status != WorkerStatus.STOPPED))
    return [row.id for row in rows]


async def incomplete(session: Session, job_ids: Sequence[int]) -> list[int]:
    """Return those of these jobs that have fewer tasks here than they should."""
    number = select(func.count()).select_from(tasks).where(tasks.c.job_id == jobs.c.id).scalar_subquery()
    chosen = select(jobs.c.id).where(session.any_of(jobs.c.id, list(job_ids)), jobs.c.total_tasks > number)
    return [row.id for row in await session.rows(chosen)]


async def empty_all(session: Session) -> None:
    """Delete everything that was copied."""
    for table in REPLICATED.values():
        await session.run(delete(table))


# ---------------------------------------------------------------- what is gone


async def _forget_missing_jobs(session: Session, choice: Choice, page: SourcePage) -> None:
    """Remove what belongs to jobs in the stretch of a page that are not on it."""
    there = {key_of(jobs, row)[0] for row in page.rows}
    here = await session.rows(select(jobs.c.id).where(*conditions(session, choice, page.last)))
    await _forget_jobs(session, {row.id for row in here} - there)


async def _forget_jobs(session: Session, ids: Iterable[int]) -> None:
    if gone := sorted(ids):
        theirs = select(tasks.c.id).where(session.any_of(tasks.c.job_id, gone))
        await session.run(delete(runs).where(runs.c.task_id.in_(theirs)))
        for table in (tasks, groups, dependencies):
            await session.run(delete(table).where(session.any_of(table.c.job_id, gone)))
        await session.run(delete(jobs).where(session.any_of(jobs.c.id, gone)))


async def _forget_tasks(session: Session, ids: Iterable[int]) -> None:
    """Remove tasks, and the edges at them. Their runs go when the coordinator's do."""
    if gone := sorted(ids):
        for column in (dependencies.c.previous_id, dependencies.c.next_id):
            await session.run(delete(dependencies).where(session.any_of(column, gone)))
        await session.run(delete(tasks).where(session.any_of(tasks.c.id, gone)))


def _ids_in(found: Changes, name: str) -> set[int]:
    return {row[0] for row in found.rows.get(name, ())}


# ---------------------------------------------------------------- callers


async def read_callers(session: Session) -> dict[str, str]:
    """Return what is known of callers, by the digest of their tokens."""
    return {row.digest: row.caller for row in await session.rows(select(replica_callers))}


async def note_caller(session: Session, digest: str, caller: str | None) -> None:
    """Write what is known of a caller; None: it is not to be let in any more."""
    await session.run(delete(replica_callers).where(replica_callers.c.digest == digest))
    if caller is not None:
        await session.insert(replica_callers, [{"digest": digest, "caller": caller}])
