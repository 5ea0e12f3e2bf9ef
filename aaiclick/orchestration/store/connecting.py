"""Single connections outside any pool, and the translation of driver errors into errors of aaiclick.

Migrations and checks of the schema use `connect`; `Database` uses `in_our_words` for the connections that it keeps.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import event
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from aaiclick.backend import check_root
from aaiclick.backoff import one_line
from aaiclick.errors import AaiclickError, BackendUnreachable, DatabaseFileError, MissingExtra
from aaiclick.file_owners import fault_around, fault_of
from aaiclick.urls import mask_url, sqlite_file

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

SQLITE_WAIT_S = 60
"""Seconds to wait for a SQLite file that another process is writing to."""

_EXTRAS = {"asyncpg": ("PostgreSQL", "postgres"), "asyncmy": ("MariaDB", "mariadb")}

_SQLITE_CAUSES = {
    "SQLITE_BUSY": ("another process holds it locked", "Wait for that process, or end it."),
    "SQLITE_CANTOPEN": ("it cannot be opened", "Check the path and its permissions."),
    "SQLITE_CORRUPT": ("it is damaged", "Restore it from a backup, or move it away to start with a new one."),
    "SQLITE_FULL": ("the disk is full", "Make room."),
    "SQLITE_IOERR": ("the disk reports an error", "Check the disk, and that the file is not on a network drive."),
    "SQLITE_NOTADB": ("it is not a SQLite database", "Name another file, or move it away to start with a new one."),
    "SQLITE_PERM": ("permission denied", "Check the permissions of the file and of its directory."),
    "SQLITE_READONLY": ("it is read-only", "Check the permissions of the file and of its directory."),
}

_creating_file = threading.Lock()


@asynccontextmanager
async def connect(url: str, *, write: bool) -> AsyncIterator[AsyncConnection]:
    """Yield a connection that is closed at the end; what was not committed is rolled back.

    With `write`, every transaction on SQLite begins by taking the file's write lock.
    """
    refuse_foreign(url)
    with in_our_words(url):
        engine = _engine(url, begin="BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            async with engine.connect() as connection:
                yield connection
        finally:
            await engine.dispose()


def _engine(url: str, *, begin: str) -> AsyncEngine:
    from sqlalchemy.ext.asyncio import create_async_engine  # imported here: it loads the ORM mapper too

    if sqlite_file(url) is None:
        return create_async_engine(url, poolclass=NullPool)
    engine = create_async_engine(
        url, poolclass=NullPool, connect_args={"timeout": SQLITE_WAIT_S, "isolation_level": None}
    )

    # a transaction that the driver begins by itself would leave out DDL
    @event.listens_for(engine.sync_engine, "begin")
    def begin_ourselves(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


@contextmanager
def in_our_words(url: str) -> Iterator[None]:
    """Raise an error that names the database and says what to do, where a driver reports that it cannot be used.

    Errors of aaiclick, and those that `explain` does not know, pass unchanged.
    """
    try:
        yield
    except AaiclickError:
        raise
    except Exception as error:
        known = explain(error, url)
        if known is None:
            raise
        raise known from error


def explain(error: Exception, url: str) -> AaiclickError | None:
    """Return the error of aaiclick that explains a driver's error.

    None unless it means that the driver is missing, or that the database is missing, unreachable or unusable.
    """
    if isinstance(error, ModuleNotFoundError) and error.name in _EXTRAS:
        return missing_driver(url, error)
    file = sqlite_file(url)
    if file is not None:
        return _explain_sqlite(error, file)
    if isinstance(error, DBAPIError):
        return _unreachable(error.orig, url) if _has_no_connection(error) else None
    if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _EXTRAS:
        return _unreachable(error, url)
    return None


def missing_driver(url: str, error: ModuleNotFoundError) -> MissingExtra:
    """Return the error that says what to install for this kind of database."""
    name = error.name or "?"
    what, extra = _EXTRAS.get(name, (f"The database at {mask_url(url)}", "all"))
    return MissingExtra(what=what, package=name, extra=extra)


def _has_no_connection(error: DBAPIError) -> bool:
    """Return whether connecting failed or the connection was lost, as opposed to a statement that failed."""
    return error.connection_invalidated or error.statement is None


def _unreachable(error: BaseException | None, url: str) -> BackendUnreachable:
    return BackendUnreachable(url=mask_url(url), cause=one_line(error))


def _explain_sqlite(error: Exception, file: Path) -> DatabaseFileError | None:
    if isinstance(error, OSError):
        return _explain_path(error, file)
    reported = error.orig if isinstance(error, DBAPIError) else error
    name = str(getattr(reported, "sqlite_errorname", ""))
    for known, (what, hint) in _SQLITE_CAUSES.items():
        if name.startswith(known):  # extended codes begin alike: SQLITE_READONLY_DIRECTORY, SQLITE_IOERR_READ, …
            return DatabaseFileError(path=str(file), cause=what, hint=hint)
    return None


def _explain_path(error: OSError, file: Path) -> DatabaseFileError | None:
    place = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes | os.PathLike) else None
    if place not in (file, *file.parents):
        return None
    where = "" if place == file else f" ({place})"
    cause = f"{(error.strerror or one_line(error)).lower()}{where}"
    return DatabaseFileError(path=str(file), cause=cause, hint="Check the path and its permissions.")


def refuse_foreign(url: str) -> None:
    """Raise if another user owns or may write the local root, the SQLite file, its side files or its directories."""
    check_root()
    file = sqlite_file(url)
    if file is None:
        return
    for each in (file, *(Path(f"{os.path.realpath(file)}{end}") for end in ("-wal", "-shm", "-journal"))):
        if (fault := fault_of(each)) is not None:
            raise DatabaseFileError(path=str(each), cause=fault.cause, hint=fault.hint)
    if (fault := fault_around(file.parent)) is not None:
        raise DatabaseFileError(path=str(file), cause=fault.cause, hint=fault.hint)


def create_file(file: Path) -> None:
    """Create a missing SQLite file, empty and readable by its owner only, and the directories above it.

    Raise DatabaseFileError if the path is not a file.
    """
    _create_directories(file.parent)
    # Closing a descriptor of the file outside of SQLite ends all locks of the process on it. So a file that exists is
    # never opened here, and one thread at a time looks.
    with _creating_file:
        if not file.exists():
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    if not file.is_file():
        raise DatabaseFileError(path=str(file), cause="it is not a file", hint="Name a file.")


def _create_directories(directory: Path) -> None:
    for missing in reversed([each for each in (directory, *directory.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
