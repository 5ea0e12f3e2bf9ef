"""Sessions: each has a connection of its own, with settings and temporary tables, until it expires."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aaiclick.data.embedded.engine import Engine, set_statement
from aaiclick.data.gateway.faults import fault
from aaiclick.data.sql import quoting

if TYPE_CHECKING:
    from chdb.state.sqlitelike import Connection

TIMEOUT_S = 60.0
TIMEOUT_S_MAX = 3600.0

WAIT_S_MAX = 0.5
"""How long a request waits for its session: a client may ask again before its unread answer is noticed."""


class GatewaySession:
    """The connection of one session, for one query at a time.

    The settings and the database of a single request are reset before the next request without them; what SET and USE
    changed stays.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.busy = threading.Lock()
        self.expires_at = math.inf
        self._closed = False
        self._home = ""
        self._away: str | None = None
        self._applied: dict[str, str | None] = {}
        self._before: dict[str, str] = {}

    def close(self) -> None:
        """Close the connection, unless it is closed already. Call it only while `busy` is held."""
        if not self._closed:
            self._closed = True
            self.connection.close()

    def prepare(self, database: str | None, settings: Mapping[str, str], *, leaves_traces: bool) -> None:
        """Set the connection to the database and settings of a request."""
        if leaves_traces:  # SET and USE change the session itself
            database, settings = None, {}
        self._go_to(database or None)
        if settings != self._applied:
            self._apply(settings)

    def _go_to(self, database: str | None) -> None:
        """Use a database for one request; without one, the database of the session."""
        if database == self._away:
            return
        if self._away is None:
            self._home = self.connection.query("SELECT currentDatabase()", "TSVRaw").bytes().decode()[:-1]
        self.connection.query(f"USE {quoting.name(database or self._home)}", "TabSeparated")
        self._away = database

    def _apply(self, settings: Mapping[str, str]) -> None:
        leaving = [name for name in self._applied if name not in settings]
        for name in leaving:
            self.connection.query(self._before.pop(name), "TabSeparated")
            del self._applied[name]
        coming = {name: value for name, value in settings.items() if self._applied.get(name) != value}
        if coming:
            statement = set_statement(coming)
            self._before.update(self._as_they_are([name for name in coming if name not in self._applied]))
            self._applied.update(dict.fromkeys(coming))  # if the next line fails, some of them may be set
            self.connection.query(statement, "TabSeparated")
            self._applied.update(coming)

    def _as_they_are(self, names: list[str]) -> dict[str, str]:
        """Return, for each setting, the statement that resets it."""
        wanted = ", ".join(map(quoting.text, names))
        query = f"SELECT name, value, changed FROM system.settings WHERE name IN ({wanted})"  # noqa: S608 (quoted)
        found = str(self.connection.query(query, "JSONCompactEachRow")) if names else ""
        rows = map(json.loads, found.splitlines())
        return {name: f"SET {name} = {quoting.text(value) if changed else 'DEFAULT'}" for name, value, changed in rows}

    def is_clean(self) -> bool:
        """Return whether rows of a failed query are gone; the first query after it still returns them."""
        answers = (self.connection.query("SELECT 'clean'", "TabSeparated").bytes() for _ in range(2))
        return any(answer == b"clean\n" for answer in answers)


class GatewaySessions:
    """The sessions of a gateway, by the ids that clients gave them."""

    def __init__(self, engine: Engine, *, wait_s_max: float = WAIT_S_MAX) -> None:
        self._engine = engine
        self._wait_s_max = wait_s_max
        self._lock = threading.Lock()
        self._sessions: dict[str, GatewaySession] = {}

    @contextmanager
    def lend(
        self, session_id: str, *, timeout_s: float = TIMEOUT_S, must_exist: bool = False, closes: bool = False
    ) -> Iterator[GatewaySession]:
        """Lend a session, made if it is missing; raise a Fault if another request does not release it in time.

        After an error the session goes on, with its temporary tables, if its connection proves to be clean.
        """
        if not 0 <= timeout_s <= TIMEOUT_S_MAX:
            raise fault(374, "INVALID_SESSION_TIMEOUT", f"Session timeout must be from 0 to {TIMEOUT_S_MAX:g} seconds.")
        session = self._take(session_id, must_exist=must_exist)
        try:
            yield session
        except BaseException:
            self._keep_if_clean(session_id, session)
            raise
        else:
            if closes:
                self._end(session_id, session)
        finally:
            with self._lock:
                session.expires_at = time.monotonic() + timeout_s
                leaves = self._sessions.get(session_id) is not session  # also if `close` was called meanwhile
                if not leaves:
                    session.busy.release()
            if leaves:
                self._let_out(session)

    def end_expired(self) -> None:
        """Close the sessions that have expired."""
        now = time.monotonic()
        with self._lock:
            expired = [name for name, session in self._sessions.items() if session.expires_at < now]
            leaving = [
                self._sessions.pop(name) for name in expired if self._sessions[name].busy.acquire(blocking=False)
            ]
        for session in leaving:
            self._let_out(session)

    def close(self) -> None:
        """Close all sessions; one that a request still uses is closed when the request ends."""
        with self._lock:
            leaving = [each for each in self._sessions.values() if each.busy.acquire(blocking=False)]
            self._sessions.clear()
        for session in leaving:
            self._let_out(session)

    def _let_out(self, session: GatewaySession) -> None:
        """Close a session that is in no list any more, and release it: a request that waits for it takes another."""
        try:
            session.close()
        finally:
            session.busy.release()

    def _take(self, session_id: str, *, must_exist: bool) -> GatewaySession:
        self.end_expired()
        deadline = time.monotonic() + self._wait_s_max
        while True:
            with self._lock:
                session = self._sessions.get(session_id)
                if session is None and must_exist:
                    raise fault(372, "SESSION_NOT_FOUND", f"Session {session_id} not found.")
                if session is None:
                    session = self._sessions[session_id] = GatewaySession(self._engine.connect())
            if not session.busy.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise fault(373, "SESSION_IS_LOCKED", f"Session {session_id} is locked by a concurrent client.")
            with self._lock:
                if self._sessions.get(session_id) is session:
                    return session
            self._let_out(session)  # it was closed during the wait, or by `close` before this request was done

    def _keep_if_clean(self, session_id: str, session: GatewaySession) -> None:
        try:
            if session.is_clean():
                return
        except RuntimeError:
            pass  # the connection is broken
        self._end(session_id, session)

    def _end(self, session_id: str, session: GatewaySession) -> None:
        with self._lock:
            if self._sessions.get(session_id) is session:
                del self._sessions[session_id]
        session.close()
