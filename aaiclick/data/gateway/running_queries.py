"""The queries that run now: limit their number, stop them, and notice when their clients have gone."""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway.faults import fault

if TYPE_CHECKING:
    from chdb.state.sqlitelike import Connection

AT_ONCE_MAX = 32
WAIT_S_MAX = 60.0
"""How long a query waits for a slot: the queries of one client may all wait for each other, and one must give up."""

_LITERAL = re.compile(rb"'((?:[^'\\]|\\.)*)'")
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL | getattr(select, "POLLRDHUP", 0)


class Working:
    """Tells a client at intervals that its query still runs."""

    def __init__(self, tell: Callable[[], None], every_s: float) -> None:
        self._tell = tell
        self._every_s = every_s
        self._due_at = time.monotonic() + every_s

    def tell_if_due(self) -> None:
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + self._every_s
            self._tell()


@dataclass(frozen=True)
class RunningQuery:
    """A running query, its connection to the engine, and its client if the query is to end with it."""

    query_id: str
    connection: Connection
    client: socket.socket | None = None
    news: Sequence[Callable[[], None]] = ()
    """Functions that are called at intervals while it runs; they must not block."""
    writer: socket.socket | None = None
    """Its client, if the query changes something: then it cannot simply be repeated elsewhere."""


class RunningQueries:
    """The queries of a gateway that run now, by their ids.

    The lock is held while one is stopped: so it cannot end meanwhile and leave its connection to another query.
    """

    def __init__(self, engine: Engine, *, at_once_max: int = AT_ONCE_MAX, wait_s_max: float = WAIT_S_MAX) -> None:
        self._engine = engine
        self._slots = threading.BoundedSemaphore(at_once_max)
        self._wait_s_max = wait_s_max
        self._lock = threading.Lock()
        self._runs: dict[str, RunningQuery] = {}

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait for a free slot; raise a Fault after `wait_s_max` seconds."""
        if not self._slots.acquire(timeout=self._wait_s_max):
            text = f"No place became free in {self._wait_s_max:g} seconds. Try again."
            raise fault(202, "TOO_MANY_SIMULTANEOUS_QUERIES", text)
        try:
            yield
        finally:
            self._slots.release()

    @contextmanager
    def enter(self, run: RunningQuery) -> Iterator[None]:
        """Register a query by its id while it runs; raise a Fault if the id is running already."""
        with self._lock:
            if run.query_id in self._runs:
                text = f"Query with id = {run.query_id} is already running."
                raise fault(216, "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING", text)
            self._runs[run.query_id] = run
        try:
            yield
        finally:
            with self._lock:
                del self._runs[run.query_id]

    def with_engine_ids(self, kill: bytes) -> bytes:
        """Return a KILL QUERY in which the ids that clients gave are replaced by those of the engine."""
        return _LITERAL.sub(self._engine_id, kill)

    def stop_abandoned(self) -> None:
        """Stop the queries whose clients have closed their connection."""
        with self._lock:
            for run in self._runs.values():
                if run.client is not None and _has_gone(run.client):
                    self._engine.stop_query(run.connection)

    def tell_clients(self) -> None:
        """Call the functions that send news to clients while their queries run."""
        with self._lock:
            due = [tell for run in self._runs.values() for tell in run.news]
        for tell in due:
            tell()

    def stop_all(self, *, only_reading: bool = False) -> None:
        """Stop all queries, or those that only read: these can be repeated elsewhere."""
        with self._lock:
            for run in self._runs.values():
                if run.writer is None or not only_reading:
                    self._engine.stop_query(run.connection)

    def writers(self) -> set[socket.socket]:
        """Return the clients whose queries change something."""
        with self._lock:
            return {run.writer for run in self._runs.values() if run.writer is not None}

    def _engine_id(self, found: re.Match[bytes]) -> bytes:
        with self._lock:
            run = self._runs.get(found[1].decode("utf-8", "surrogateescape"))
            engine_id = self._engine.running_id(run.connection) if run else None
        return f"'{engine_id}'".encode() if engine_id else found[0]


def _has_gone(client: socket.socket) -> bool:
    """Return whether the other side has closed; bytes that wait to be read tell nothing."""
    poll = select.poll()
    try:
        poll.register(client, select.POLLIN | _GONE)
        events = sum(event for _, event in poll.poll(0))
        if events & _GONE:
            return True
        return bool(events) and client.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True
