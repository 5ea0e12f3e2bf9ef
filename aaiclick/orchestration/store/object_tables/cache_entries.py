"""Remembered results: writing an entry with the completion of its run, finding one, and removing entries.

An entry keeps the tables that its result names: they are pinned under the entry's own id, which no task or job has. In
the order of locks, entries come after tasks and tables, and before groups and jobs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, delete, or_, select

from aaiclick.config import settings
from aaiclick.ids import new_id
from aaiclick.orchestration.models.cached import CacheKey
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import plain
from aaiclick.orchestration.rules.values.reference_marks import marks_of, mentions_objects
from aaiclick.orchestration.rules.values.run_tables import is_run_table, tables_named
from aaiclick.orchestration.store.definitions.cache_tables import cache_entries
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.object_tables.inputs import lock_tables
from aaiclick.orchestration.store.object_tables.references import free_pins, pin
from aaiclick.orchestration.store.session import Session

CACHE, KEY = "cache", "key"
"""The kinds of entries: results that are cached, and those that an idempotency key remembers."""

NODES = ("task", "group")
TABLES = ("object", "view", "blob")


class Made(NamedTuple):
    """A run that has just completed, whose result is to be remembered under a key that is `bound`."""

    job_id: int
    task_id: int
    epoch: int
    result_json: str
    key: CacheKey


def bound(key: CacheKey, entrypoint: str) -> CacheKey:
    """Return the key as it is stored: bound to the function of the task, whatever the worker says.

    So a node reads and writes only what belongs to functions that it is given to run.
    """
    name = plain(entrypoint)
    digest = hashlib.sha256(f"{name}\n{key.digest}".encode()).hexdigest()
    return replace(key, digest=digest, entrypoint=name)


async def find_entry(session: Session, digest: str) -> Row[Any] | None:
    """Return the entry of this key, unless its time is over by the database's clock."""
    entry = cache_entries.c
    in_time = or_(entry.expires_at.is_(None), entry.expires_at > session.dialect.now())
    return await session.first(select(cache_entries).where(entry.digest == digest, in_time))


async def remember(session: Session, made: Sequence[Made]) -> None:
    """Write entries for these runs, in the transaction that completes them and before their tables are let go.

    If a valid entry for the key is there already, as when two runs miss at once, it stays; unless the new one is to
    refresh it. Results that name tasks, or tables that belong to no job, are not remembered.
    """
    wanted = [each for each in sorted(made, key=lambda each: each.key.digest) if is_lasting(each.result_json)]
    if not wanted:
        return
    now = await session.now()
    for each in wanted:
        tables = tables_named(each.result_json)
        if tables and await lock_tables(session, tables, lock=False):
            continue  # the run holds its tables: these were dropped before, by other means
        await _write(session, each, tables, now)


def is_lasting(result_json: str) -> bool:
    """Return whether a result means the same after its job: it names no tasks, and only tables whose end is known."""
    if not ('"marks"' in result_json or mentions_objects(result_json)):
        return True
    for kind, payload in marks_of(result_json):
        if kind in NODES or kind not in TABLES:
            return False
        if not isinstance(payload, Mapping) or not is_run_table(payload.get("table")):
            return False
    return True


async def _write(session: Session, made: Made, tables: frozenset[str], now: datetime) -> None:
    row = _row(made, tables, now)
    await insert_missing(session, cache_entries, [row])
    entry = cache_entries.c
    there = select(entry.id, entry.expires_at).where(entry.digest == made.key.digest).with_for_update()
    found: Any = await session.first(there)
    if found is not None and found.id != row["id"]:
        is_over = found.expires_at is not None and found.expires_at <= now
        if not (made.key.refresh or is_over):
            return
        await free_pins(session, [found.id])
        await session.run(delete(cache_entries).where(entry.id == found.id))
        await session.insert(cache_entries, [row])
    await pin(session, {(row["id"], table) for table in tables})


def _row(made: Made, tables: frozenset[str], now: datetime) -> dict[str, Any]:
    key = made.key
    ttl_s = None if key.once else key.ttl_s or settings().cache_ttl_s
    return {
        "digest": key.digest,
        "id": new_id(),
        "kind": KEY if key.once else CACHE,
        "entrypoint": key.entrypoint,
        "label": key.label,
        "inputs": key.inputs,
        "result": made.result_json,
        "tables": len(tables),
        "job_id": made.job_id,
        "task_id": made.task_id,
        "epoch": made.epoch,
        "created_at": now,
        "expires_at": None if ttl_s is None else now + timedelta(seconds=ttl_s),
    }


async def remove_entries(session: Session, limit: int, *which: ColumnElement[bool]) -> int:
    """Remove up to `limit` entries that meet the conditions, and free their tables; return how many there were."""
    entry = cache_entries.c
    chosen = select(entry.id).where(*which).order_by(entry.digest).limit(limit).with_for_update(skip_locked=True)
    ids = sorted(row.id for row in await session.rows(chosen))
    if ids:
        await free_pins(session, ids)
        await session.run(delete(cache_entries).where(session.any_of(entry.id, ids)))
    return len(ids)
