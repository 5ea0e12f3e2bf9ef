"""The file of a replica: SQLite, with the schema of any database of the state, marked as nobody else's to use.

It is a copy, so one that another version made is thrown away, not migrated.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from aaiclick.errors import Conflict
from aaiclick.orchestration.store import schema
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects.sqlite import SqliteDialect
from aaiclick.orchestration.store.replicas.creation import add_replica_tables
from aaiclick.urls import sqlite_url


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
        await schema.create_replica(url, add_replica_tables)
    dialect = SqliteDialect(time)
    return Database(url, dialect.engine(url), dialect)


def remove(file: Path) -> None:
    """Remove the file of a replica, with what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
