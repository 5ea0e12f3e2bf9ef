"""What the benchmarks share: fresh databases on the servers that were started for them, and jobs without bodies."""

from __future__ import annotations

import os
import platform
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.models import Job, Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.store import schema

SERVERS = {"postgres": "TEST_POSTGRES_URL", "mariadb": "TEST_MARIADB_URL"}


def server_url(kind: str) -> str:
    """The URL of a server that `python -m tests.servers` started."""
    url = os.environ.get(SERVERS[kind])
    if url is None:
        sys.exit(f"No {kind} server. Run: python -m tests.servers {kind} -- python -m benchmarks…")
    return url


def postgres_dsn() -> str:
    return server_url("postgres").replace("+asyncpg", "")


@asynccontextmanager
async def fresh_database(kind: str, *, migrated: bool = True) -> AsyncIterator[str]:
    """A migrated, empty database: `sqlite`, `postgres` or `mariadb`."""
    if kind == "sqlite":
        with TemporaryDirectory() as directory:
            url = f"sqlite+aiosqlite:///{Path(directory) / 'bench.db'}"
            await schema.upgrade(url)
            yield url
        return
    base = server_url(kind)
    name = f"bench_{secrets.token_hex(4)}"
    await _on_server(base, f"CREATE DATABASE {name}")
    try:
        url = f"{base.rpartition('/')[0]}/{name}"
        if migrated:
            await schema.upgrade(url)
        yield url
    finally:
        await _on_server(base, f"DROP DATABASE {name}")


async def _on_server(url: str, statement: str) -> None:
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            await connection.execute(text(statement))
    finally:
        await engine.dispose()


async def submit_tasks(
    coordinator: DirectCoordinator, count: int, name: str = "bench", body: str = "benchmarks.bodies.noop"
) -> Job:
    """A job of so many independent tasks that do nothing."""
    job = new_job(name)
    tasks = [Task(body, {"x": 1}) for _ in range(count)]
    return await coordinator.submit(Submission(job.id, tasks=tasks, new_job=job))


def machine() -> str:
    """Where this runs, in a line."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
