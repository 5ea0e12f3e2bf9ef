"""The database goes away and comes back, and connections are cut, under load: no worker ends, nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.engine import make_url

from aaiclick.orchestration.models import Job
from aaiclick.orchestration.store import tables
from tests.servers.databases import Databases, MariadbDatabases, PostgresDatabases
from tests.support.fleet import LONG, Fleet, eventually, fleet, opened_fleet, servers_only
from tests.support.restarts import restartable
from tests.support.schema import migrate

__all__ = ["fleet"]

CUTS = 60 if LONG else 12
RESTARTS = 3 if LONG else 1
QUICK = 3000 if LONG else 500


async def _load(fleet: Fleet) -> Job:
    """Two bodies that wait, and many that do not."""
    job = await fleet.submit(*(fleet.errand("waits", f"wait{number}") for number in range(2)), *fleet.quick(QUICK))
    await fleet.noted("began", 2)
    return job


async def _nothing_happened(fleet: Fleet, job: Job) -> None:
    """All completed, each task once, and neither the tasks nor the workers are blamed."""
    assert (await fleet.end_of(job)).status == "completed"
    counts = tables.tasks.c
    blamed = select(counts.name, counts.lost_count, counts.crash_count, counts.attempt).where(
        (counts.lost_count + counts.crash_count + counts.attempt) > 0
    )
    assert await fleet.rows(blamed) == []
    assert len(fleet.notes("began")) == len(fleet.notes("ended")) == 2
    for member in fleet.members:
        assert member.alive, member.said()
        assert len(await fleet.sessions(member)) == 1


@servers_only
async def test_a_database_that_restarts_under_load(dialect: str, tmp_path: Path) -> None:
    with restartable(dialect) as server:
        await migrate(server.url)
        async with opened_fleet(server.url, tmp_path / "fleet", session_s=12.0) as fleet:
            await fleet.workers(2)
            job = await _load(fleet)
            for _ in range(RESTARTS):
                await asyncio.to_thread(server.stop)
                await asyncio.sleep(0.5)
                await asyncio.to_thread(server.start)
            await eventually(lambda: _answers(fleet))
            fleet.let()
            await _nothing_happened(fleet, job)


async def _answers(fleet: Fleet) -> bool:
    try:
        await fleet.scalar(select(1))
    except Exception as error:
        return not str(error)
    return True


@servers_only
async def test_connections_that_are_cut_under_load(fleet: Fleet, databases: Databases) -> None:
    fleet.env["AAICLICK_SESSION_SECONDS"] = "12"
    await fleet.workers(2)
    job = await _load(fleet)
    for _ in range(CUTS):
        await asyncio.to_thread(_cut, databases, str(make_url(fleet.database.url).database))
        await asyncio.sleep(0.25)
    fleet.let()
    await eventually(lambda: _answers(fleet))
    await _nothing_happened(fleet, job)


def _cut(databases: Databases, name: str) -> None:
    if isinstance(databases, PostgresDatabases):
        databases.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    else:
        assert isinstance(databases, MariadbDatabases)
        databases.disconnect(name)
