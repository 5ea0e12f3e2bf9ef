"""What replicas ask of a coordinator: pages of tables, and what has changed after an event.

The events are read first, and the rows that they name after that: a row is at least as new as its events say. So a
replica that applies an answer, and asks again after its cursor, misses nothing, whatever was written meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, func, select

from aaiclick.orchestration.rules.settled_events import settled
from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.store.definitions.column_types import SQLITE_TIME
from aaiclick.orchestration.store.reading.event_feed import newest, newest_settled
from aaiclick.orchestration.store.replicas.replicated import (
    OF_JOBS,
    PAGE_ROWS_MAX,
    REPLICATED,
    Choice,
    Rows,
    digest_of,
    key_of,
    read_page,
    read_rows,
)
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, fires, installation, jobs, runs, tasks, workers

IDS_AT_ONCE = 500

SMALL_TASKS, SMALL_TASKS_MAX = 100, 2_000
"""New graphs of so many tasks come with the events, of so many in one answer; larger ones are asked for in pages."""

GROWTH_S = 5.0
"""Seconds by which tasks may be older than the event that tells of them: it is written later in their transaction."""


class SourcePage(msgspec.Struct):
    """So many rows of a table. With `same`, the asker has these already, and `rows` is empty."""

    installation: str
    count: int
    rows: list[list[Any]] = []
    last: list[Any] | None = None
    """The key of the last row; None at the end of the table."""
    same: bool = False


class Start(msgspec.Struct):
    """Where following begins, if it begins now: behind an event, known by its time."""

    installation: str
    now: str
    cursor: int
    mark: str


class Changes(msgspec.Struct):
    """What has changed after an event."""

    installation: str
    now: str
    cursor: int
    mark: str
    oldest: int
    """The id of the oldest event that there is; 0 without any."""
    newest: int
    """The id of the newest event, which may not be settled yet."""
    lost: bool = False
    """The event that the asker has read last is not here, or another one: what came after it is not known."""
    events: list[list[Any]] = []
    rows: dict[str, list[list[Any]]] = {}
    task_ids: list[int] = []
    job_ids: list[int] = []
    """What the events name: what has no row any more is gone."""
    grown: list[tuple[int, str | None]] = []
    """Jobs with new tasks, and since when; None: the whole graph is new."""


async def read_start(session: Session) -> Start:
    """Return where following begins."""
    cursor = await newest_settled(session)
    return Start(await _installation(session), await _now(session), cursor, await _mark(session, cursor))


async def read_source_page(session: Session, choice: Choice, limit: int, digest: str) -> SourcePage:
    """Return the first rows of a choice, unless they have this digest."""
    limit = min(limit, PAGE_ROWS_MAX)
    table = REPLICATED[choice.table]
    rows = await read_page(session, choice, limit)
    last = list(key_of(table, rows[-1])) if len(rows) == limit else None
    if digest and digest_of(rows) == digest:
        return SourcePage(await _installation(session), len(rows), last=last, same=True)
    return SourcePage(await _installation(session), len(rows), _lists(rows), last)


async def read_changes(session: Session, after: int, mark: str, limit: int) -> Changes:
    """Return the next events after one, with the rows that they name; `mark` is the time of that event."""
    now, name = await _now(session), await _installation(session)
    oldest, last = int(await session.scalar(select(func.min(events.c.id))) or 0), await newest(session)
    found = Changes(name, now, after, mark, oldest, last)
    if await _mark(session, after) != mark if after else oldest > 1:
        found.lost = True
        return found
    told = await _settled_after(session, after, min(limit, PAGE_ROWS_MAX))
    if not told:
        return found
    found.cursor, found.mark = told[-1].id, told[-1].at.strftime(SQLITE_TIME)
    found.events = _lists(await read_rows(session, events, _between(after, found.cursor), order=[events.c.id]))
    await _add_named(session, found, told)
    return found


async def read_workers(session: Session, known: Sequence[int]) -> list[list[Any]]:
    """Return the workers that have not stopped, and those of these ids."""
    rows = await read_rows(session, workers, [workers.c.status != WorkerStatus.STOPPED])
    there = {row[0] for row in rows}
    for some in _batches(sorted(set(known) - there)):
        rows += await read_rows(session, workers, [session.any_of(workers.c.id, some)])
    return _lists(rows)


def _between(after: int, upto: int) -> list[ColumnElement[bool]]:
    return [events.c.id > after, events.c.id <= upto]


async def _settled_after(session: Session, after: int, limit: int) -> list[Any]:
    """Return the ids, times and subjects of the next events, up to a gap that may still be filled."""
    columns = (events.c.id, events.c.at, events.c.job_id, events.c.task_id, events.c.move, events.c.detail)
    rows = await session.rows(select(*columns).where(events.c.id > after).order_by(events.c.id).limit(limit))
    if session.dialect.one_writer:  # ids are given in the order of the commits
        return list(rows)
    return list(rows[: settled(((row.id, row.at) for row in rows), after, await session.now())])


async def _add_named(session: Session, found: Changes, told: Sequence[Any]) -> None:
    """Add the rows that the events name, as they are now."""
    found.task_ids = sorted({row.task_id for row in told if row.task_id is not None})
    found.job_ids = sorted({row.job_id for row in told})
    found.rows = {
        "tasks": await _by_ids(session, "tasks", tasks.c.id, found.task_ids),
        "runs": await _by_ids(session, "runs", runs.c.task_id, found.task_ids),
        "jobs": await _by_ids(session, "jobs", jobs.c.id, found.job_ids),
        "fires": await _by_ids(session, "fires", fires.c.job_id, found.job_ids),
    }
    grown: dict[int, str | None] = {}
    for row in told:
        if row.move == "create":
            grown[row.job_id] = None
        elif row.move == "grow":
            grown.setdefault(row.job_id, (row.at - timedelta(seconds=GROWTH_S)).strftime(SQLITE_TIME))
    small = _small(told)
    for name in sorted(OF_JOBS):
        of_small = await _by_ids(session, name, REPLICATED[name].c.job_id, small)
        found.rows[name] = [*found.rows.get(name, ()), *of_small]
    found.grown = [(job_id, since) for job_id, since in sorted(grown.items()) if job_id not in small]


def _small(told: Sequence[Any]) -> list[int]:
    """Return the new jobs whose graphs are small, as many as have room."""
    room, small = SMALL_TASKS_MAX, set[int]()
    for row in told:
        if row.move == "create" and (size := int(row.detail or 0)) <= min(room, SMALL_TASKS):
            small.add(row.job_id)
            room -= size
    return sorted(small - {row.job_id for row in told if row.move == "grow"})


async def _by_ids(session: Session, name: str, column: Any, ids: Sequence[int]) -> list[list[Any]]:
    table, found = REPLICATED[name], list[tuple[Any, ...]]()
    for some in _batches(ids):
        found += await read_rows(session, table, [session.any_of(column, some)])
    return _lists(found)


def _batches(ids: Sequence[int]) -> Iterable[Sequence[int]]:
    return (ids[first : first + IDS_AT_ONCE] for first in range(0, len(ids), IDS_AT_ONCE))


def _lists(rows: Rows) -> list[list[Any]]:
    return [list(row) for row in rows]


async def _installation(session: Session) -> str:
    return str(await session.scalar(select(installation.c.id)) or "")


async def _now(session: Session) -> str:
    return (await session.now()).strftime(SQLITE_TIME)


async def _mark(session: Session, event_id: int) -> str:
    """Return the time of an event; nothing if there is none of this id."""
    row = await session.first(select(events.c.at).where(events.c.id == event_id))
    return "" if row is None else row.at.strftime(SQLITE_TIME)
