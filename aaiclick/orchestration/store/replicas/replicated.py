"""The tables and columns that a replica has, and their rows in one form, whatever the database.

Rows are read as SQLite stores them: times as texts, flags as 0 and 1. So they need no conversion on their way, and the
same content has the same digest on both sides.

What nobody is shown is left out: results, which are asked of the coordinator, and counters of the scheduling. So are
all tables of access from outside: tokens, callbacks, the audit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Column, ColumnElement, String, Table, and_, or_, select

from aaiclick.orchestration.store import schema as schema  # registers all tables
from aaiclick.orchestration.store.definitions.column_types import UtcTime
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import (
    backfills,
    dependencies,
    events,
    fires,
    groups,
    jobs,
    registered_jobs,
    runs,
    tasks,
    workers,
)

Key = Sequence[Any]
"""The values of a primary key, in the form of the rows."""

Rows = Sequence[Sequence[Any]]

PAGE_ROWS_MAX = 5_000

_JOBS = "reserved_for result key_digest"
_TASKS = """parent_epoch result log_path unmet_count dependents_count gated needs_inputs reserved_for retry_policy
    kept run_epoch stop_when_cut_off awaited_count amiss cache_policy"""
_GROUPS = "depth unmet_count open_count failed_count dependents_count unended_count awaited_count amiss lane"

LEFT_OUT: Mapping[str, frozenset[str]] = {
    "jobs": frozenset(_JOBS.split()),
    "tasks": frozenset(_TASKS.split()) - {"stop_when_cut_off"},
    "groups": frozenset(_GROUPS.split()),
    "dependencies": frozenset({"met"}),
    "runs": frozenset({"log_path", "report_digest"}),
}
"""The columns that a replica does not have, by table."""

BY_EVENTS: tuple[Table, ...] = (jobs, groups, tasks, dependencies, runs, events)
"""Tables whose changes are told by events, or follow from what is."""

BY_LOOKS: tuple[Table, ...] = (nodes, registered_jobs, backfills)
"""Small tables that are looked at all the time."""

REPLICATED: Mapping[str, Table] = {str(table.name): table for table in (*BY_EVENTS, *BY_LOOKS, fires, workers)}
"""All tables of a replica, in the order in which they are copied."""

OF_JOBS = frozenset({"tasks", "groups", "dependencies"})
"""Tables whose rows can be asked for by job."""


class Choice(NamedTuple):
    """Which rows of a table are meant: those behind a key, in the order of keys."""

    table: str
    after: Key | None = None
    upto: int | None = None
    """The last id, of tables whose rows have one."""
    job_id: int | None = None
    since: str | None = None
    """Created at this time or later; only with a job."""


def complaint_about(choice: Choice) -> str:
    """Return why there are no such rows to choose; nothing if there are."""
    table = REPLICATED.get(choice.table)
    if table is None:
        return f"it must be one of {', '.join(REPLICATED)}"
    if choice.upto is not None and "id" not in table.c:
        return "its rows have no id"
    if choice.job_id is not None and choice.table not in OF_JOBS:
        return "its rows are not chosen by job"
    if choice.since is not None and (choice.job_id is None or "created_at" not in table.c):
        return "its rows are not chosen by time"
    keys = list(table.primary_key.columns)
    try:
        moment(choice.since or "2000-01-01")
        fits = choice.after is None or len(_typed(table, choice.after)) == len(keys)
    except (TypeError, ValueError):  # what is no time; or more or fewer values than the key has
        fits = False
    texts = [isinstance(column.type, String | UtcTime) for column in keys]
    if not fits or (choice.after is not None and texts != [isinstance(value, str) for value in choice.after]):
        return "this is no key of it, or no time"
    return ""


def columns_of(table: Table) -> list[Column[Any]]:
    """Return the columns of a table that a replica has."""
    left_out = LEFT_OUT.get(table.name, frozenset())
    return [column for column in table.columns if column.name not in left_out]


def digest_of(rows: Rows) -> str:
    """Return the digest of rows, in their order."""
    return hashlib.blake2b(msgspec.msgpack.encode([tuple(row) for row in rows]), digest_size=16).hexdigest()


def key_of(table: Table, row: Sequence[Any]) -> Key:
    """Return the primary key of a row."""
    names = [column.name for column in columns_of(table)]
    return tuple(row[names.index(column.name)] for column in table.primary_key.columns)


async def read_page(session: Session, choice: Choice, limit: int) -> list[tuple[Any, ...]]:
    """Return the first rows of a choice."""
    table = REPLICATED[choice.table]
    keys = [session.dialect.copies.in_byte_order(column) for column in table.primary_key.columns]
    return await read_rows(session, table, conditions(session, choice), order=keys, limit=limit)


async def read_rows(
    session: Session,
    table: Table,
    which: Sequence[ColumnElement[bool]],
    *,
    order: Sequence[ColumnElement[Any]] = (),
    limit: int | None = None,
) -> list[tuple[Any, ...]]:
    """Return rows of a table in the form in which they travel."""
    plain = [session.dialect.copies.as_in_sqlite(column).label(column.name) for column in columns_of(table)]
    chosen = select(*plain).where(*which).order_by(*order).limit(limit)
    return [tuple(row) for row in await session.rows(chosen)]


def conditions(session: Session, choice: Choice, last: Key | None = None) -> list[ColumnElement[bool]]:
    """Return the conditions of a choice, up to and including the key `last`."""
    table = REPLICATED[choice.table]
    keys = [session.dialect.copies.in_byte_order(column) for column in table.primary_key.columns]
    found: list[ColumnElement[bool]] = []
    if choice.after is not None:
        found.append(_behind(keys, _typed(table, choice.after)))
    if last is not None:
        found.append(~_behind(keys, _typed(table, last)))
    if choice.upto is not None:
        found.append(table.c.id <= choice.upto)
    if choice.job_id is not None:
        found.append(table.c.job_id == choice.job_id)
    if choice.since is not None:
        found.append(table.c.created_at >= moment(choice.since))
    return found


def moment(text: str) -> datetime:
    """Return the time that a text in a row says."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _typed(table: Table, key: Key) -> list[Any]:
    """Return the values of a key as the columns' types take them."""
    columns = table.primary_key.columns
    return [
        moment(value) if isinstance(column.type, UtcTime) else value for column, value in zip(columns, key, strict=True)
    ]


def _behind(keys: Sequence[ColumnElement[Any]], after: Sequence[Any]) -> ColumnElement[bool]:
    """Return the condition that a row's key comes after another; not as a comparison of tuples, for MariaDB's sake."""
    behind = keys[-1] > after[-1]
    for key, value in zip(reversed(keys[:-1]), reversed(after[:-1]), strict=True):
        behind = or_(key > value, and_(key == value, behind))
    return and_(keys[0] >= after[0], behind)
