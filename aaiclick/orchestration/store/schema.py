"""The schema of a database: which version it has, whether this code can use it, how it is created and migrated."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Column, MetaData, String, Table, inspect, select, text, update
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DBAPIError

from aaiclick.backoff import one_line
from aaiclick.errors import Conflict, InputError, SchemaError
from aaiclick.orchestration.store.connecting import connect, create_file, explain, in_our_words, refuse_foreign
from aaiclick.orchestration.store.connecting import missing_driver as missing_driver
from aaiclick.orchestration.store.definitions import access_tables as access_tables  # registers its tables
from aaiclick.orchestration.store.definitions import cache_tables as cache_tables  # registers its table
from aaiclick.orchestration.store.definitions import execution_records as execution_records  # registers its view
from aaiclick.orchestration.store.definitions import fleet_tables as fleet_tables  # registers its table
from aaiclick.orchestration.store.definitions import lease_views as lease_views  # registers its views
from aaiclick.orchestration.store.definitions import task_events as task_events  # registers its view
from aaiclick.orchestration.store.inline import InlineConnection
from aaiclick.orchestration.store.leases import reconcilers as reconcilers  # registers its table
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import metadata
from aaiclick.urls import mask_url, sqlite_file

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_STEPS = Path(__file__).parent / "migrations"

REVISIONS = tuple(sorted(step.name[:4] for step in (_STEPS / "versions").glob("[0-9]*.py")))
"""All versions of the schema, oldest first, read from the names of the files: importing Alembic is slow."""

HEAD = REVISIONS[-1]
"""The version that this code needs."""

VERSION_TABLE = "aaiclick_schema"
"""Not Alembic's default, `alembic_version`: another tool in the same database may have a table of that name."""

LOCK_WAIT_S = 300.0
LOCK_POLL_S = 0.1

UPGRADE_HINT = "Run: aaiclick migrate upgrade head"
FOREIGN_HINT = "Give aaiclick a database of its own."
NEWER_HINT = "Install a newer aaiclick: pip install --upgrade aaiclick"
COPYING_HINT = "Finish it: aaiclick migrate copy --to this database. Or give it up: make the database anew."
DAMAGED_HINT = "Restore them from a backup, or start with an empty database."

COPYING = "copying "
"""Stands in the version table in front of the name of a copy that is not finished: nobody may work there until then."""

REPLICA = "replica "
"""Stands in the version table of a replica's file in front of the version: only that replica may use it."""

REPLICA_HINT = "Ask the server that keeps it."

_version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
_version_read = select(_version.c.version_num)

_TRY_LOCK = {
    "postgresql": "SELECT pg_try_advisory_lock(4702111234474983745)",  # arbitrary, and unlikely to be used by others
    "mysql": f"SELECT GET_LOCK(CONCAT('{VERSION_TABLE}.', MD5(DATABASE())), 0)",
    "mariadb": f"SELECT GET_LOCK(CONCAT('{VERSION_TABLE}.', MD5(DATABASE())), 0)",
}

_alembic = threading.Lock()


@dataclass(frozen=True)
class State:
    """What was found in a database."""

    versions: tuple[str, ...] | None
    """The rows of the version table; None if there is no such table."""

    tables: frozenset[str]
    """The tables of aaiclick that exist."""


@dataclass(frozen=True)
class Verdict:
    """What a state means, in words for the error message, and what the user can do about it."""

    kind: Literal[
        "current", "empty", "half", "older", "newer", "foreign", "damaged", "copying", "replica", "old replica"
    ]
    found: str
    hint: str = UPGRADE_HINT

    @property
    def can_upgrade(self) -> bool:
        return self.hint == UPGRADE_HINT


NO_DATABASE = State(versions=None, tables=frozenset())


def judge(state: State) -> Verdict:
    """Return whether the schema is the one that this code needs, and if not, why."""
    if state.versions is None:
        return _judge_unversioned(state.tables)
    if not state.versions:
        return Verdict("half", "incomplete (its first migration did not finish)")
    version = ", ".join(state.versions)
    if version.startswith(COPYING):
        return Verdict("copying", "not there yet (a copy of another database is not finished)", COPYING_HINT)
    if version.startswith(REPLICA):
        kind: Literal["replica", "old replica"] = "replica" if version == REPLICA + HEAD else "old replica"
        return Verdict(kind, "that of a replica, a copy of another database", REPLICA_HINT)
    if version == HEAD:
        return _judge_current(state.tables)
    if version in REVISIONS:
        return Verdict("older", version)
    if version.isdecimal() and len(version) == len(HEAD) and version > HEAD:
        return Verdict("newer", version, NEWER_HINT)
    return Verdict("foreign", f"{version} (which is not a version of aaiclick)", FOREIGN_HINT)


def _judge_unversioned(tables: frozenset[str]) -> Verdict:
    if not tables:
        return Verdict("empty", "not there yet")
    found = f"not aaiclick's (no version, but tables of the same names: {_list(tables)})"
    return Verdict("foreign", found, FOREIGN_HINT)


def _judge_current(tables: frozenset[str]) -> Verdict:
    missing = metadata.tables.keys() - tables
    if not missing:
        return Verdict("current", HEAD)
    return Verdict("damaged", f"{HEAD} without its tables {_list(missing)}", DAMAGED_HINT)


def _list(names: frozenset[str] | set[str]) -> str:
    return ", ".join(sorted(names))


def look(connection: Connection) -> State:
    """Read the version table, and which tables of aaiclick exist."""
    names = set(inspect(connection).get_table_names())
    versions = tuple(connection.scalars(_version_read)) if VERSION_TABLE in names else None
    return State(versions, frozenset(names & metadata.tables.keys()))


async def current(url: str) -> str | None:
    """Return the version of the database's schema; None if it has none."""
    versions = (await _state(url)).versions
    return ", ".join(versions) if versions else None


async def verdict_of(url: str) -> Verdict:
    """Return what the schema of a database is; a missing SQLite file counts as empty."""
    return judge(await _state(url))


async def set_version(session: Session, version: str) -> None:
    """Write a version of the schema, or the mark of a copy, in place of what is there."""
    await session.run(update(_version).values(version_num=version))


async def get_version(session: Session) -> str:
    """Return what is in the version table."""
    return str(await session.scalar(_version_read))


async def check(url: str) -> None:
    """Raise SchemaError if the schema is missing, older, newer, half made, damaged or not aaiclick's."""
    _refuse(url, judge(await _state(url)))


async def _state(url: str) -> State:
    file = sqlite_file(url)
    with in_our_words(url):
        if file is not None and not file.exists():
            return NO_DATABASE
    async with connect(url, write=False) as connection:
        return await connection.run_sync(look)


async def require_current(connection: AsyncConnection | InlineConnection) -> None:
    """Raise SchemaError unless the schema's version is the one that this code needs.

    In the good case it costs one small query: unlike `check`, it does not look for the tables.
    """
    url = connection.engine.url.render_as_string(hide_password=False)
    with in_our_words(url):
        try:
            if list(await connection.scalars(_version_read)) == [HEAD]:
                return
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
        await connection.rollback()  # PostgreSQL may refuse all others after a failed statement
        _refuse(url, judge(await connection.run_sync(look)))


def _refuse(url: str, verdict: Verdict) -> None:
    if verdict.kind != "current":
        raise SchemaError(url=mask_url(url), found=verdict.found, needed=HEAD, hint=verdict.hint)


async def ensure_local(url: str) -> bool:
    """Create a missing or empty SQLite file with its schema; return True if this call created the schema.

    Any other file or database is left alone: the caller that opens it calls `require_current`. Two processes may do
    this at once: the schema is created in one transaction, under the file's write lock.
    """
    refuse_foreign(url)
    file = sqlite_file(url)
    if file is None:
        return False
    with in_our_words(url):
        if file.is_file() and file.stat().st_size > 0:
            return False
        create_file(file)
    async with connect(url, write=True) as connection:
        made = await connection.run_sync(create_at_once)
        await connection.commit()
    return made


def create_at_once(connection: Connection) -> bool:
    """Create the newest schema directly, without the migrations; return False if the database is not empty.

    A test proves that both ways give the same schema.
    """
    if judge(look(connection)).kind != "empty":
        return False
    metadata.create_all(connection, checkfirst=False)
    _version.create(connection, checkfirst=False)
    connection.execute(_version.insert().values(version_num=HEAD))
    return True


async def create_replica(url: str, change: Callable[[Connection], None]) -> None:
    """Create a SQLite file with the newest schema for a replica, which changes some of it, and mark it as such."""

    def work(connection: Connection) -> None:
        create_at_once(connection)
        change(connection)
        connection.execute(update(_version).values(version_num=REPLICA + HEAD))

    file = sqlite_file(url)
    assert file is not None, "a replica is a file"
    with in_our_words(url):
        create_file(file)
    async with connect(url, write=True) as connection:
        await connection.run_sync(work)
        await connection.commit()


async def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the database to this version of the schema; one that has the newest version is left alone.

    While another process migrates the same database, this waits, at most LOCK_WAIT_S on a server. On PostgreSQL and
    SQLite all steps are one transaction; on MariaDB, the next run continues one that was cut off.
    """
    _check_revision(revision)
    # Alembic keeps its state in module variables: one run at a time, in a thread where no other coroutine runs
    await asyncio.to_thread(_run_alone, _upgrade(url, revision))


def _run_alone(work: Coroutine[Any, Any, None]) -> None:
    with _alembic:
        asyncio.run(work)


async def _upgrade(url: str, revision: str) -> None:
    refuse_foreign(url)
    file = sqlite_file(url)
    if file is not None:
        with in_our_words(url):
            create_file(file)
    async with connect(url, write=True) as connection:
        await _lock(connection, url)
        verdict = judge(await connection.run_sync(look))
        if verdict.kind == "current":
            return
        if not verdict.can_upgrade:
            _refuse(url, verdict)
        try:
            await connection.run_sync(_run_steps, revision)
            await connection.commit()
        except DBAPIError as error:
            if explain(error, url) is not None:
                raise
            hint = f"The database refused a step: {one_line(error.orig)}"
            raise SchemaError(url=mask_url(url), found=verdict.found, needed=HEAD, hint=hint) from error


async def _lock(connection: AsyncConnection, url: str) -> None:
    """Keep other migrations of this database out until the connection closes.

    SQLite needs no such lock: its transaction begins with the write lock.
    """
    try_lock = _TRY_LOCK.get(connection.dialect.name)
    if try_lock is None:
        return
    for _ in range(int(LOCK_WAIT_S / LOCK_POLL_S)):
        taken = await connection.scalar(text(try_lock))
        await connection.commit()  # later reads must not use a snapshot that is older than the lock
        if taken:
            return
        await asyncio.sleep(LOCK_POLL_S)
    cause = f"another migration has been running for {LOCK_WAIT_S:.0f} seconds"
    raise Conflict(what=f"The schema of {mask_url(url)}", verb="upgraded", cause=cause, hint="Try again later.")


def _run_steps(connection: Connection, revision: str) -> None:
    if connection.dialect.name in ("mysql", "mariadb"):
        connection.exec_driver_sql("SET sql_notes = 0")  # else the driver logs «already exists», which is expected here
    _version.create(connection, checkfirst=True)  # while it is empty, the first step has not finished
    _alembic_upgrade(revision, connection.dialect.name, connection=connection)


def sql(url: str, revision: str = "head") -> str:
    """Return the SQL that `upgrade` would run on an empty database; `from:to` gives the steps between two versions."""
    for part in revision.split(":", 1):
        _check_revision(part)
    kind = make_url(url).get_backend_name()
    with _alembic:
        written = _alembic_upgrade(revision, "mariadb" if kind == "mysql" else kind)
    return written.replace(f"CONSTRAINT {VERSION_TABLE}_pkc ", "")  # `_version` leaves this constraint without a name


def _alembic_upgrade(revision: str, dialect_name: str, connection: Connection | None = None) -> str:
    """Run the migrations on the connection; without one, return them as SQL."""
    # imported here: it takes a third of a second, and most callers of this module never migrate
    from alembic import command
    from alembic.config import Config

    written = io.StringIO()
    config = Config(output_buffer=written)
    config.set_main_option("script_location", str(_STEPS).replace("%", "%%"))
    config.attributes["options"] = {
        "connection": connection,
        "dialect_name": dialect_name,
        "transactional_ddl": dialect_name in ("sqlite", "postgresql"),
        "version_table": VERSION_TABLE,
    }
    command.upgrade(config, revision, sql=connection is None)
    return written.getvalue()


def _check_revision(revision: str) -> None:
    if revision not in ("head", *REVISIONS):
        hint = f"Write head or one of {', '.join(REVISIONS)}."
        raise InputError(field="revision", value=revision, rule="there is no such version of the schema", hint=hint)
