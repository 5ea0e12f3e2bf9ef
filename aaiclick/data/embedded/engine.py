"""The embedded ClickHouse engine: chdb over one directory, and connections to it that are safe to use again.

A process has one engine at a time, and one process at a time owns an engine's directory: see directory_lock.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from aaiclick.data.embedded.insert_tokens import forget_torn_inserts
from aaiclick.data.sql import quoting
from aaiclick.errors import EngineUnavailable

if TYPE_CHECKING:
    from chdb.state.sqlitelike import Connection

IDLE_MAX = 32
"""How many idle connections are kept."""

DEFAULT_DATABASE = "default"

SPILLING_SHARE = 16
SORTED_PIECE_SHARE = 200
SORTED_PIECE_BYTES_MAX = 100 * 1024 * 1024

CONTROL_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux tells how much memory a container may take: in control groups of version 2, and of version 1."""

_SETTING_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_WITHOUT_ZONE = """
SELECT DISTINCT database, table FROM system.columns
WHERE database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema')
AND match(type, 'DateTime(64[(][0-9][)]|[)]|,|$)')
"""
"""Lists the tables with times that have no zone."""

Key = tuple[str, tuple[tuple[str, str], ...]]
"""What a connection was prepared for: the database, and its settings sorted by name."""


class Engine:
    """chdb, opened on a directory.

    A root connection stays open as long as the engine: chdb shuts down with its last connection.
    """

    def __init__(
        self, directory: Path, *, memory_bytes_max: int | None = None, query_memory_bytes_max: int | None = None
    ) -> None:
        """Open the engine; `memory_bytes_max` limits all queries together, `query_memory_bytes_max` each one.

        By default, all together may take half of the machine's memory: the rest is for the processes that use the
        engine. A query beyond its limit fails with code 241; a client may raise the limit of a query, never that of
        all. Long before that, sorts and groups go to disk.
        """
        self.directory = directory.resolve()
        memory_bytes_max = memory_bytes_max or machine_memory_bytes() // 2
        self.query_settings = spilling(memory_bytes_max)
        """The settings of every connection, whoever opens it."""
        if query_memory_bytes_max:
            self.query_settings["max_memory_usage"] = query_memory_bytes_max
        self._tags: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()
        self._numbers = itertools.count(1)
        self._idle: OrderedDict[Key, list[Connection]] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        forget_torn_inserts(self.directory)  # no other process has the directory open
        self._root = self._open_root({"max_server_memory_usage": memory_bytes_max})
        self.timezone = str(self._root.query("SELECT timezone()", "TabSeparated")).strip()
        self._attach_again()

    @classmethod
    def open(
        cls, directory: Path, *, memory_bytes_max: int | None = None, query_memory_bytes_max: int | None = None
    ) -> Engine:
        """Open the engine over a directory, which is made if it is missing."""
        return cls(directory, memory_bytes_max=memory_bytes_max, query_memory_bytes_max=query_memory_bytes_max)

    @contextmanager
    def connection(
        self, *, database: str = DEFAULT_DATABASE, settings: Mapping[str, str] | None = None, reuse: bool = True
    ) -> Iterator[Connection]:
        """Lend a connection with this database and these settings to one thread, until the block ends.

        It is kept for reuse only if the block raises nothing: after a query that failed, chdb 26.9 gives the rows of
        that query first to the next one on the same connection. A block that sends SET or USE, makes temporary tables
        or leaves a result half read passes `reuse=False`.
        """
        key = (database, tuple(sorted((settings or {}).items())))
        connection = (self._take_idle(key) if reuse else None) or self.connect(database=database, settings=settings)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if reuse:
            self._keep(key, connection)
        else:
            connection.close()

    def connect(self, *, database: str = DEFAULT_DATABASE, settings: Mapping[str, str] | None = None) -> Connection:
        """Return a new connection, which the caller closes; it costs 0.2 ms, and as much again with settings."""
        connection = self._open({})
        try:
            if database != DEFAULT_DATABASE:
                connection.query(f"USE {quoting.name(database)}", "TabSeparated")
            if settings:
                connection.query(set_statement(settings), "TabSeparated")
        except BaseException:
            connection.close()
            raise
        return connection

    def running_id(self, connection: Connection) -> str | None:
        """Return the engine's id of the query that runs on a connection, if any; call it on another thread."""
        found = self._ask(f"SELECT query_id FROM system.processes WHERE {self._is_on(connection)} LIMIT 1")  # noqa: S608 (its own words and ids)
        return found.strip() or None

    def stop_query(self, connection: Connection) -> None:
        """Stop the query that runs on a connection, from another thread; the query fails with code 394."""
        self._ask(f"KILL QUERY WHERE {self._is_on(connection)} ASYNC")

    def close(self) -> None:
        """Close all connections that are not lent; chdb shuts down with its last connection."""
        with self._lock:
            self._closed = True
            idle = [connection for line in self._idle.values() for connection in line]
            self._idle.clear()
        for connection in (*idle, self._root):
            connection.close()

    def _open_root(self, settings: Mapping[str, Any]) -> Connection:
        if "?" in str(self.directory):
            raise self._unavailable("chdb takes what follows a question mark for settings", "Name it otherwise.")
        try:
            return self._open(settings)
        except FileNotFoundError:  # chdb asks for the current directory while it is loaded
            raise self._unavailable("the current directory does not exist", "Change to one that does.") from None
        except RuntimeError as error:
            told = str(error).removeprefix("Failed to create connection: ").partition(", Stack trace")[0]
            cause = told.strip().rstrip(".")
            raise self._unavailable(cause or "chdb does not say why", self._hint(cause)) from error

    def _attach_again(self) -> None:
        """Attach existing tables again, so that their times without a zone are in UTC, not in the machine's zone.

        chdb takes the machine's zone when it is loaded, which cannot be changed, but ATTACH takes the zone of the
        session.
        """
        if self._ask("SELECT serverTimezone()").strip() == "UTC":
            return
        with self.connection() as connection:
            found = str(connection.query(_WITHOUT_ZONE, "JSONCompactEachRow"))
        for database, table in map(json.loads, found.splitlines()):
            name = f"{quoting.name(database)}.{quoting.name(table)}"
            try:
                self._ask(f"DETACH TABLE {name} SYNC")
            except RuntimeError:  # something else depends on it
                continue
            self._ask(f"ATTACH TABLE {name}")

    def _hint(self, cause: str) -> str:
        if "already initialized" in cause:
            return "A process opens one directory at a time."
        return "" if cause else "Another process may have opened it."

    def _unavailable(self, cause: str, hint: str) -> EngineUnavailable:
        return EngineUnavailable(directory=self.directory, cause=cause, hint=hint)

    def _open(self, settings: Mapping[str, Any]) -> Connection:
        from chdb.state.sqlitelike import Connection  # here, to keep start-up light

        if self._closed:
            raise self._unavailable("the engine is closed", "")
        # log_comment identifies a connection in system.processes: chdb offers no way to choose the id of a query.
        # Without implicit_select=0, a misspelt statement is taken for an expression.
        # Without session_timezone, times without a zone would be in the machine's zone.
        tag = f"aaiclick-{next(self._numbers)}"
        always = {"log_comment": tag, "implicit_select": 0, "session_timezone": "UTC"}
        options = {**always, **self.query_settings, **settings}
        connection = Connection(f"{self.directory}?{urlencode(options)}")
        self._tags[connection] = tag
        return connection

    def _is_on(self, connection: Connection) -> str:
        return f"Settings['log_comment'] = '{self._tags[connection]}'"

    def _ask(self, statement: str) -> str:
        with self.connection() as connection:
            return str(connection.query(statement, "TabSeparated"))

    def _take_idle(self, key: Key) -> Connection | None:
        with self._lock:
            line = self._idle.get(key)
            if not line:
                return None
            connection = line.pop()
            if not line:
                del self._idle[key]
            return connection

    def _keep(self, key: Key, connection: Connection) -> None:
        """Keep a connection for reuse; beyond IDLE_MAX, one of the least recently used kind is closed."""
        with self._lock:
            leaving = []
            if self._closed:
                leaving.append(connection)
            else:
                self._idle.setdefault(key, []).append(connection)
                self._idle.move_to_end(key)
                if sum(map(len, self._idle.values())) > IDLE_MAX:
                    oldest = next(iter(self._idle))
                    leaving.append(self._idle[oldest].pop())
                    if not self._idle[oldest]:
                        del self._idle[oldest]
        for one in leaving:
            one.close()


def spilling(memory_bytes_max: int) -> dict[str, int]:
    """Return the settings for when sorts and groups go to disk: early, as several may run; joins do so by themselves.

    ClickHouse's defaults are half of all memory for each, and 100 MB for a block that is sorted.
    """
    return {
        "max_bytes_before_external_sort": memory_bytes_max // SPILLING_SHARE,
        "max_bytes_before_external_group_by": memory_bytes_max // SPILLING_SHARE,
        "min_external_sort_block_bytes": min(SORTED_PIECE_BYTES_MAX, memory_bytes_max // SORTED_PIECE_SHARE),
    }


def machine_memory_bytes(groups: Sequence[Path] = CONTROL_GROUPS) -> int:
    """Return the memory of this machine in bytes, or what its container may take of it."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in groups:
        with suppress(OSError, ValueError):  # no such file, or it says «max»
            found.append(int(file.read_text()))
    return min(found)


def set_statement(settings: Mapping[str, str]) -> str:
    """Return the SET statement for these settings.

    Raise RuntimeError for a name that is not an identifier: it would become part of the statement.
    """
    for name in settings:
        if not _SETTING_NAME.fullmatch(name):
            raise RuntimeError(f"Code: 115. DB::Exception: Unknown setting {name!r}. (UNKNOWN_SETTING)")
    return "SET " + ", ".join(f"{name} = {quoting.text(value)}" for name, value in settings.items())
