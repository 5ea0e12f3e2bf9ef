"""Rows of `registered_jobs`: read, add, change. A transaction that changes or fires an entry locks its row first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update

from aaiclick.errors import NotFound
from aaiclick.ids import new_id
from aaiclick.orchestration.models import RegisteredJob
from aaiclick.orchestration.rules.schedules.cron import find_zone, next_fire, parse_schedule
from aaiclick.orchestration.rules.schedules.fires import FireOutcome
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import fires, registered_jobs

PAGE = 500

# ---------------------------------------------------------------- queries


async def get_registered_job(session: Session, name: str) -> RegisteredJob | None:
    row = await session.first(select(registered_jobs).where(registered_jobs.c.name == name))
    return None if row is None else RegisteredJob.from_row(row)


async def list_registered_jobs(session: Session, enabled_only: bool) -> list[RegisteredJob]:
    """Return all entries, or only the enabled ones, ordered by name; they are read in pages."""
    found: list[RegisteredJob] = []
    while True:
        page = select(registered_jobs).order_by(registered_jobs.c.name).limit(PAGE)
        if enabled_only:
            page = page.where(registered_jobs.c.enabled)
        if found:
            page = page.where(registered_jobs.c.name > found[-1].name)
        rows = await session.rows(page)
        found += map(RegisteredJob.from_row, rows)
        if len(rows) < PAGE:
            return found


async def lock_registered_job(
    session: Session, *, name: str | None = None, entry_id: int | None = None
) -> RegisteredJob | None:
    """Read an entry, by name or id, and lock its row until this transaction ends; None if there is none."""
    chosen = registered_jobs.c.id == entry_id if name is None else registered_jobs.c.name == name
    row = await session.first(select(registered_jobs).where(chosen).with_for_update())
    return None if row is None else RegisteredJob.from_row(row)


def no_such_job(name: str) -> NotFound:
    return NotFound(what="registered job", field="name", value=shorten(name), hint="See: aaiclick registered-job list")


# ---------------------------------------------------------------- changes


async def add_registered_job(session: Session, facts: Mapping[str, Any]) -> RegisteredJob:
    """Insert an entry, enabled unless `facts` say otherwise; a unique index refuses a name that is taken."""
    now = await session.now()
    row = {"enabled": True} | dict(facts) | {"id": new_id(), "created_at": now, "updated_at": now}
    row["next_run_at"] = next_time(row["schedule"], row["timezone"], now) if row["enabled"] else None
    await session.run(insert(registered_jobs).values(row))
    return await _read(session, row["id"])


async def upsert_registered_job(session: Session, facts: Mapping[str, Any]) -> RegisteredJob:
    """Insert an entry, or replace the facts of the one with this name.

    Without `enabled` among the facts, an existing entry stays enabled or disabled as it was.
    """
    entry = await lock_registered_job(session, name=facts["name"])
    return await (add_registered_job(session, facts) if entry is None else _change(session, entry, facts))


async def set_enabled(session: Session, name: str, enabled: bool) -> RegisteredJob:
    """Enable or disable an entry. Times that passed while it was disabled are not made up for.

    Raise NotFound if there is no entry of this name.
    """
    entry = await lock_registered_job(session, name=name)
    if entry is None:
        raise no_such_job(name)
    return entry if entry.enabled == enabled else await _change(session, entry, {"enabled": enabled})


async def _change(session: Session, entry: RegisteredJob, facts: Mapping[str, Any]) -> RegisteredJob:
    now = await session.now()
    timing = ("enabled", "schedule", "timezone")
    before = {field: getattr(entry, field) for field in timing}
    after = {field: facts.get(field, before[field]) for field in timing}
    changes = dict(facts) | {"updated_at": now}
    if after != before:  # otherwise a time that is due, and not fired yet, would be lost
        fires_on = after["enabled"]
        changes["next_run_at"] = next_time(after["schedule"], after["timezone"], now) if fires_on else None
    await session.run(update(registered_jobs).where(registered_jobs.c.id == entry.id).values(changes))
    if not after["enabled"] or after["schedule"] is None:
        await leave_queued(session, entry.id)
    return await _read(session, entry.id)


async def _read(session: Session, entry_id: int) -> RegisteredJob:
    row = await session.first(select(registered_jobs).where(registered_jobs.c.id == entry_id))
    assert row is not None
    return RegisteredJob.from_row(row)


def next_time(schedule: str | None, zone: str, now: datetime) -> datetime | None:
    """Return when a schedule fires next after `now`; None without a schedule."""
    return None if schedule is None else next_fire(parse_schedule(schedule), find_zone(zone), now)


async def leave_queued(session: Session, entry_id: int) -> None:
    """Mark the queued times of an entry as skipped: it was disabled, or lost its schedule."""
    waiting = (fires.c.outcome == FireOutcome.QUEUED, fires.c.registered_job_id == entry_id)
    await session.run(update(fires).where(*waiting).values(outcome=FireOutcome.SKIPPED))
