"""The server: it listens, and serves every connection on a thread of its own, as the engine's calls block."""

from __future__ import annotations

import functools
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, cast

from aaiclick.backoff import Backoff
from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway.exchange import Service, answer, is_ping, knows_password, refuse
from aaiclick.data.gateway.http.replies import Reply
from aaiclick.data.gateway.http.request_reader import BadRequest, Head, read_head
from aaiclick.data.gateway.http.sockets import Listener, listen_on_port
from aaiclick.data.gateway.running_queries import AT_ONCE_MAX, RunningQueries
from aaiclick.data.gateway.sessions import GatewaySessions

CONNECTIONS_MAX = 512
STRANGERS_MAX = 64
"""How many of them may belong to clients that have not shown the password; the rest is kept for those that have."""

STRANGER_S_MAX = 10.0
"""How long a client has to show the password; if there is no room for another, the oldest stranger is ended."""

READ_BUFFER_BYTES = 1 << 18
SILENCE_S_MAX = 300.0
"""How long a client may be silent, between requests and within one."""

LOOK_EVERY_S = 0.5
"""How often clients that have gone and sessions that have expired are looked for."""

LINGER_S = 1.0

STOP_GRACE_S = 1.0
"""How long queries have to end by themselves when the gateway stops."""

WRITING_GRACE_S = 60.0
"""How long queries that change something have: their client cannot tell how far they came."""

log = logging.getLogger("aaiclick.gateway")


class Gateway:
    """Serves an engine over ClickHouse's HTTP protocol, to clients that know the password."""

    def __init__(
        self,
        engine: Engine,
        user: str,
        password: str,
        *,
        listener: Listener | None = None,
        host: str = "127.0.0.1",
        port: int | None = 0,
        at_once_max: int = AT_ONCE_MAX,
        files: bool = False,
    ) -> None:
        """Prepare a gateway on the listener, if there is one, and on a TCP port, unless that is None.

        Without `files`, clients on the port may not reach files and addresses.
        """
        sessions, running = GatewaySessions(engine), RunningQueries(engine, at_once_max=at_once_max)
        self._service = Service(engine, user, password, sessions, running, files)
        self._address = None if port is None else (host, port)
        self._listeners = [] if listener is None else [listener]
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, threading.Thread] = {}
        self._busy: set[socket.socket] = set()
        self._strangers: dict[socket.socket, float] = {}
        self._stopping = threading.Event()
        self._last_request_at = time.monotonic()

    def start(self) -> Gateway:
        """Listen, and serve on threads of its own."""
        if self._address is not None:
            self._listeners.append(listen_on_port(*self._address))
        self._last_request_at = time.monotonic()
        works: list[Callable[[], None]] = [self._look_after]
        works += [functools.partial(self._accept, each.socket) for each in self._listeners]
        for work in works:
            thread = threading.Thread(target=work, name="gateway", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    @property
    def url(self) -> str:
        """Return where it listens, once started: the socket file, if there is one."""
        return self._listeners[0].url

    @property
    def tcp(self) -> str:
        """Return where it listens on TCP; an empty text if it does not."""
        return next((each.url for each in self._listeners if each.url.startswith("http")), "")

    @property
    def idle_s(self) -> float:
        """Return how long there was no request, in seconds; a ping does not count."""
        with self._lock:
            return 0.0 if self._busy else time.monotonic() - self._last_request_at

    def stop(self) -> None:
        """Stop: reading queries have a second to end, writing ones a minute; then they are stopped.

        Clients see their connection end, not a query that was killed: they may repeat it with the next owner.
        """
        self._stopping.set()
        for listener in self._listeners:
            listener.wake_up()
        # Shut for reading only: a request that arrived in time is answered, and a later one is seen not to be taken.
        self._hang_up(self._open_clients() - self._busy, socket.SHUT_RD)
        self._wait_for_clients(STOP_GRACE_S)
        if self._open_clients():
            self._hang_up(self._open_clients() - self._service.running.writers())
            self._service.running.stop_all(only_reading=True)
            self._wait_for_clients(WRITING_GRACE_S)
        if self._open_clients():
            self._hang_up(self._open_clients())
            self._service.running.stop_all()
            self._wait_for_clients(STOP_GRACE_S)
        for thread in self._threads:
            thread.join()
        for listener in self._listeners:
            listener.close()
        self._service.sessions.close()

    def _accept(self, listening: socket.socket) -> None:
        listening.settimeout(LOOK_EVERY_S)
        backoff = Backoff()
        while not self._stopping.is_set():
            try:
                client, _ = listening.accept()
            except TimeoutError:
                continue
            except OSError as error:  # for example, out of file descriptors: others will be closed
                backoff.met("accepting connections to the gateway", error)
                self._stopping.wait(LOOK_EVERY_S)
                continue
            backoff.over()
            self._welcome(client)

    def _welcome(self, client: socket.socket) -> None:
        thread = threading.Thread(target=self._serve, args=(client,), name="gateway client", daemon=True)
        client.settimeout(STRANGER_S_MAX)
        if client.family != socket.AF_UNIX:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            if len(self._strangers) >= STRANGERS_MAX:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                self._hang_up({oldest})
                self._clients.pop(oldest, None)  # its place is free at once; its thread ends later
            if len(self._clients) < CONNECTIONS_MAX:
                self._clients[client] = thread
                self._strangers[client] = time.monotonic()
                thread.start()
                return
        client.close()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, client.makefile("rb", READ_BUFFER_BYTES) as file:
                reader = cast(BinaryIO, file)
                while not self._stopping.is_set():
                    head = self._next_head(client, reader)
                    if head is None or not self._answer(head, reader, client):
                        break
        except OSError:
            pass  # the client has gone
        finally:
            with self._lock:
                self._clients.pop(client, None)
                self._strangers.pop(client, None)

    def _next_head(self, client: socket.socket, reader: BinaryIO) -> Head | None:
        try:
            return read_head(reader)
        except BadRequest as error:
            refuse(Reply(client, keep_alive=False, version="HTTP/1.1"), error.status, str(error))
            client.shutdown(socket.SHUT_WR)
            client.settimeout(LINGER_S)
            while client.recv(READ_BUFFER_BYTES):
                continue  # if the socket is closed with bytes unread, the answer may be lost
            return None

    def _answer(self, head: Head, reader: BinaryIO, client: socket.socket) -> bool:
        counts = not is_ping(head)
        is_known = counts and knows_password(self._service, head)
        with self._lock:
            self._busy.add(client)
            was_strange = is_known and self._strangers.pop(client, None) is not None
        if was_strange:
            client.settimeout(SILENCE_S_MAX)
        try:
            return answer(self._service, head, reader, client)
        finally:
            with self._lock:
                self._busy.discard(client)
                if counts:
                    self._last_request_at = time.monotonic()

    def _look_after(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            self._end_strangers()
            try:
                self._service.running.stop_abandoned()
                self._service.running.tell_clients()
                self._service.sessions.end_expired()
            except RuntimeError as error:
                log.warning("the engine refused to stop a query: %s", error)

    def _end_strangers(self) -> None:
        """Close connections that did not show the password in time, even if they are sending."""
        with self._lock:
            late = {client for client, since in self._strangers.items() if time.monotonic() - since > STRANGER_S_MAX}
            for client in late:
                del self._strangers[client]
            self._hang_up(late)

    def _open_clients(self) -> set[socket.socket]:
        with self._lock:
            return set(self._clients)

    @staticmethod
    def _hang_up(clients: set[socket.socket], ways: int = socket.SHUT_RDWR) -> None:
        for client in clients:
            with suppress(OSError):  # the client has closed already
                client.shutdown(ways)

    def _wait_for_clients(self, wait_s: float) -> None:
        deadline = time.monotonic() + wait_s
        with self._lock:
            threads = list(self._clients.values())
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
