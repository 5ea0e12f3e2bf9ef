"""The file of a replica: SQLite, with the schema of any database of the state, marked as nobody else's to use.

It is a copy, so one of another version or of another coordinator is thrown away, not migrated.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, text

from aaiclick.errors import Conflict
from aaiclick.orchestration.store import schema
from aaiclick.orchestration.store.connecting import connect, create_file
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects.sqlite import SqliteDialect
from aaiclick.orchestration.store.replicas.applying import replica_tables
from aaiclick.urls import sqlite_url

LIVE = "status IN ('claimed', 'running')"

CLAIMS = (
    "DROP TABLE claims",
    f"CREATE INDEX ix_tasks_live ON tasks (worker_id) WHERE {LIVE}",
    f"CREATE VIEW claims AS SELECT worker_id, id AS task_id, epoch, 0 AS claim_call FROM tasks WHERE {LIVE}",  # noqa: S608
)
"""Claims are not copied: which tasks are held is in their rows."""


async def open_replica(file: Path, time: Callable[[], datetime]) -> Database:
    """Open the file of a replica, which is made anew unless this version made it. `time`: what its answers call now."""
    url = sqlite_url(file)
    kind = (await schema.verdict_of(url)).kind
    if kind not in ("replica", "old replica", "empty"):
        hint = "Name another file with --replica-file."
        raise Conflict(what=str(file), verb="used for a replica", cause="it is something else", hint=hint)
    if kind == "old replica":
        remove(file)
    if kind != "replica":
        create_file(file)
        async with connect(url, write=True) as connection:
            await connection.run_sync(_create)
            await connection.commit()
    dialect = SqliteDialect(time)
    return Database(url, dialect.engine(url), dialect)


def remove(file: Path) -> None:
    """Remove the file of a replica, with what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)


def _create(connection: Connection) -> None:
    schema.create_at_once(connection)
    for statement in CLAIMS:
        connection.execute(text(statement))
    replica_tables.create_all(connection)
    schema.mark_replica(connection)
