"""Entries of the catalogue at hand, for tests of what their schedules do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update

from aaiclick.orchestration.coordinator.registered_jobs import add_registered_job
from aaiclick.orchestration.models import Fire, RegisteredJob
from aaiclick.orchestration.store.schedules import registered_jobs as store
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import fires, jobs, registered_jobs
from tests.support.orchestra import Orchestra

PLAIN = "tests.orchestration.scheduled_flows.plain"

HOUR = (datetime.now(UTC).hour + 12) % 24
DAILY = f"0 {HOUR} * * *"
"""Far from now, so that no time comes by itself while a test runs."""


async def register(band: Orchestra, name: str = "a", schedule: str | None = DAILY, **facts: Any) -> RegisteredJob:
    """A new entry, from its row."""
    row = {"name": name, "entrypoint": PLAIN, "schedule": schedule, "timezone": "UTC", "default_kwargs": "{}"}
    return await add_registered_job(band.database, row | facts)


async def come(band: Orchestra, moment: datetime, name: str = "a") -> None:
    """Let the entry's next time be that one, which has come."""
    mine = update(registered_jobs).where(registered_jobs.c.name == name).values(next_run_at=moment)
    await band.database.transact(lambda session: session.run(mine))


async def entry_of(band: Orchestra, name: str = "a") -> RegisteredJob:
    found = await band.database.read(lambda session: store.get_registered_job(session, name))
    assert found is not None
    return found


async def fires_of(band: Orchestra) -> list[Fire]:
    """All times that are written down, in order."""
    rows = await band.rows(select(fires).order_by(fires.c.registered_job_id, fires.c.fire_at))
    return [Fire.from_row(row) for row in rows]


async def count_jobs(band: Orchestra) -> int:
    return int(await band.scalar(select(func.count()).select_from(jobs)))


async def database_time(band: Orchestra) -> datetime:
    return await band.database.read(Session.now)


async def days_ago(band: Orchestra, days: int) -> datetime:
    """The latest time of the daily schedule, or so many days before it."""
    now = await database_time(band)
    today = now.replace(hour=HOUR, minute=0, second=0, microsecond=0)
    return (today if today <= now else today - timedelta(days=1)) - timedelta(days=days)
